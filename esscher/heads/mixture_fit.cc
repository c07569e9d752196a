#include "esscher/heads/mixture_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/simd/gemm.h"

namespace esscher {
namespace {

// Keys whose responsibility is below this do not enter a component's sums. In high dimension nearly
// every key belongs to one component, so this makes the M-step cost one pass, not k.
constexpr double kNegligible = 1e-9;
constexpr int kLloydSteps = 5;

// Keys handled together: what is computed from them stays in the first caches.
constexpr Index kBlock = 128;

// Centres chosen with probability proportional to the squared distance to the nearest one so far.
Matrix plus_plus(const MatrixView& keys, Index k, const Stream& stream) {
  const Index n = keys.rows();
  Matrix centres(k, keys.cols());
  Vector nearest = Vector::Constant(n, std::numeric_limits<double>::infinity());
  for (Index c = 0; c < k; ++c) {
    const double u = stream.uniform(c);
    Index pick = std::min<Index>(n - 1, static_cast<Index>(u * n));
    const double total = c == 0 ? 0 : nearest.sum();
    if (total > 0) {
      double left = u * total;
      for (pick = 0; pick < n - 1 && left >= nearest(pick); ++pick) left -= nearest(pick);
    }
    centres.row(c) = keys.row(pick);
    for (Index l = 0; l < n; ++l) {
      nearest(l) = std::min(nearest(l), (keys.row(l) - centres.row(c)).squaredNorm());
    }
  }
  return centres;
}

// Hard responsibilities [n,k] after a few Lloyd steps from `centres`.
Matrix lloyd(const MatrixView& keys, Matrix centres) {
  const Index n = keys.rows();
  const Index k = centres.rows();
  std::vector<Index> nearest(n);
  for (int step = 0; step < kLloydSteps; ++step) {
    // |key - centre|^2 is least where <key, centre> - |centre|^2 / 2 is largest.
    Matrix products = (-0.5 * centres.rowwise().squaredNorm()).transpose().replicate(n, 1);
    add_product(keys, Matrix(centres.transpose()), products);
    Matrix sums = Matrix::Zero(k, keys.cols());
    Vector counts = Vector::Zero(k);
    for (Index l = 0; l < n; ++l) {
      products.row(l).maxCoeff(&nearest[l]);
      sums.row(nearest[l]) += keys.row(l);
      counts(nearest[l]) += 1;
    }
    for (Index c = 0; c < k; ++c) {
      if (counts(c) > 0) centres.row(c) = sums.row(c) / counts(c);
    }
  }
  Matrix assignment = Matrix::Zero(n, k);
  for (Index l = 0; l < n; ++l) assignment(l, nearest[l]) = 1;
  return assignment;
}

// sum_l r_l (key_l - m)(key_l - m)' over the listed keys [d,d].
Matrix scatter(const MatrixView& keys, const Matrix& r, Index c, const std::vector<Index>& members,
               const Vector& mean) {
  Matrix out = Matrix::Zero(keys.cols(), keys.cols());
  Matrix rows(kBlock, keys.cols());
  const auto count = static_cast<Index>(members.size());
  for (Index first = 0; first < count; first += kBlock) {
    const Index used = std::min(kBlock, count - first);
    for (Index i = 0; i < used; ++i) {
      const Index l = members[first + i];
      rows.row(i) = std::sqrt(r(l, c)) * (keys.row(l) - mean.transpose());
    }
    add_gram(rows.topRows(used), out);
  }
  return out;
}

// M-step: weights, means and covariances from responsibilities [n,k].
void maximise(const MatrixView& keys, const Matrix& r, MixtureFit& fit) {
  const Index n = keys.rows();
  std::vector<Index> members;
  for (Index c = 0; c < r.cols(); ++c) {
    const double weight = r.col(c).sum();
    if (weight < 1e-6) {  // an empty component keeps its place and fades
      fit.weights(c) = 1e-12;
      continue;
    }
    members.clear();
    Vector sum = Vector::Zero(keys.cols());
    for (Index l = 0; l < n; ++l) {
      if (r(l, c) < kNegligible) continue;
      members.push_back(l);
      sum += r(l, c) * keys.row(l).transpose();
    }
    fit.weights(c) = weight / static_cast<double>(n);
    fit.means[c] = sum / weight;
    fit.covs[c] = scatter(keys, r, c, members, fit.means[c]) / weight;
    fit.covs[c].diagonal().array() += fit.floor;
  }
  fit.weights /= fit.weights.sum();
}

// What turns a component's log density into a sum of squares: (key - m)' C^-1 (key - m) =
// |W' key - W' m|^2 with C = L L', W = L^-T, which is upper triangular.
struct Whitening {
  Matrix W;         // [d,d]
  Vector centre;    // W' m [d]
  double constant;  // log w - log det L - d/2 log 2 pi

  Whitening(double weight, const Vector& mean, const Matrix& cov) {
    const Index d = mean.size();
    const Eigen::LLT<Matrix> cholesky(cov);
    const Matrix L = cholesky.matrixL();
    W = L.triangularView<Eigen::Lower>().solve(Matrix::Identity(d, d)).transpose();
    centre = W.transpose() * mean;
    constant = std::log(weight) - L.diagonal().array().log().sum() -
               0.5 * static_cast<double>(d) * std::log(2 * std::numbers::pi);
  }
};

// log w_c + log N(key_l; m_c, C_c) [n,k].
Matrix log_joint(const MixtureFit& fit, const MatrixView& keys) {
  std::vector<Whitening> whitenings;
  for (Index c = 0; c < fit.size(); ++c) {
    whitenings.emplace_back(fit.weights(c), fit.means[c], fit.covs[c]);
  }
  Matrix out(keys.rows(), fit.size());
  for (Index first = 0; first < keys.rows(); first += kBlock) {
    const Index rows = std::min(kBlock, keys.rows() - first);
    for (Index c = 0; c < fit.size(); ++c) {
      const Whitening& component = whitenings[c];
      Vector squares = Vector::Zero(rows);
      add_whitened_squares(keys.middleRows(first, rows), component.W, component.centre, squares);
      out.col(c).segment(first, rows) = component.constant - 0.5 * squares.array();
    }
  }
  return out;
}

// E-step in place: log joint [n,k] to responsibilities; returns the mean log-likelihood.
double normalise(Matrix& log_r) {
  constexpr double kNothing = -45;  // e^-45 is far below kNegligible: not worth an exponential
  double total = 0;
  for (Index l = 0; l < log_r.rows(); ++l) {
    const double top = log_r.row(l).maxCoeff();
    double sum = 0;
    for (double& x : log_r.row(l)) sum += x = x - top < kNothing ? 0.0 : std::exp(x - top);
    log_r.row(l) /= sum;
    total += top + std::log(sum);
  }
  return total / static_cast<double>(log_r.rows());
}

// Parameters and the responsibilities they give to the keys.
struct State {
  MixtureFit fit;
  Matrix r;  // [n,k]
};

// Up to `steps` EM steps from the responsibilities.
void iterate(const MatrixView& keys, int steps, double tolerance, State& state) {
  for (int step = 0; step < steps; ++step) {
    const double before = state.fit.log_likelihood;
    maximise(keys, state.r, state.fit);
    state.r = log_joint(state.fit, keys);
    state.fit.log_likelihood = normalise(state.r);
    if (state.fit.log_likelihood - before < tolerance) return;
  }
}

}  // namespace

MixtureFit fit_mixture(const MatrixView& keys, Index k, const Stream& stream,
                       const MixtureFitOptions& options) {
  const Index n = keys.rows();
  if (k < 1 || k > n) {
    throw_argument("fit_mixture", "components", std::to_string(k),
                   "between 1 and the number of keys " + std::to_string(n));
  }
  const Vector mean = keys.colwise().mean();
  const double variance =
      (keys.rowwise() - mean.transpose()).squaredNorm() / static_cast<double>(n * keys.cols());
  MixtureFit start{
      .weights = Vector::Constant(k, 1.0 / static_cast<double>(k)),
      .means = std::vector<Vector>(k, mean),
      .covs = std::vector<Matrix>(k, Matrix::Identity(keys.cols(), keys.cols())),
      .floor = std::max(options.relative_floor * variance, std::numeric_limits<double>::min()),
      .log_likelihood = -std::numeric_limits<double>::infinity()};
  State best{start, {}};
  const int restarts = k == 1 ? 1 : options.restarts;
  for (int attempt = 0; attempt < restarts; ++attempt) {
    State state{start, lloyd(keys, plus_plus(keys, k, stream.split(attempt)))};
    iterate(keys, options.short_iterations, options.tolerance, state);
    if (attempt == 0 || state.fit.log_likelihood > best.fit.log_likelihood) {
      best = std::move(state);
    }
  }
  iterate(keys, options.max_iterations, options.tolerance, best);
  return best.fit;
}

Matrix responsibilities(const MixtureFit& fit, const MatrixView& keys) {
  Matrix r = log_joint(fit, keys);
  normalise(r);
  return r;
}

}  // namespace esscher
