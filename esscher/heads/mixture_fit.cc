#include "esscher/heads/mixture_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/stop.h"
#include "esscher/simd/gemm.h"

namespace esscher {
namespace {

// Keys whose responsibility is below this do not enter a component's sums. In high dimension nearly
// every key belongs to one component, so this makes the M-step cost one pass, not k.
constexpr double kNegligible = 1e-6;
// Pairs of key and component that sparse E-steps look at, how many such steps follow a wider one,
// and the pairs that one looks at.
constexpr double kPlausible = 1e-3;
constexpr int kSparseSteps = 4;
constexpr double kPossible = 1e-12;
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
    check_stop();
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

// The keys of each component and their responsibilities.
struct Members {
  std::vector<Index> keys;
  std::vector<double> shares;
};

// Those with responsibility at least `least`.
std::vector<Members> members_of(const Matrix& r, double least) {
  std::vector<Members> out(static_cast<std::size_t>(r.cols()));
  for (Members& one : out) {
    one.keys.reserve(static_cast<std::size_t>(2 * r.rows() / r.cols()));
    one.shares.reserve(one.keys.capacity());
  }
  for (Index l = 0; l < r.rows(); ++l) {
    for (Index c = 0; c < r.cols(); ++c) {
      if (r(l, c) < least) continue;
      out[c].keys.push_back(l);
      out[c].shares.push_back(r(l, c));
    }
  }
  return out;
}

// M-step: weights, means and covariances from responsibilities [n,k]. The keys are centred and the
// floor is far above rounding, so second moments lose nothing by being shifted afterwards.
void maximise(const MatrixView& keys, const Matrix& r, MixtureFit& fit) {
  const auto n = static_cast<double>(keys.rows());
  const std::vector<Members> members = members_of(r, kNegligible);
  const Vector weights = r.colwise().sum();
  for (Index c = 0; c < r.cols(); ++c) {
    const double weight = weights(c);
    if (weight < 1e-6) {  // an empty component keeps its place and fades
      fit.weights(c) = 1e-12;
      continue;
    }
    Vector sum = Vector::Zero(keys.cols());
    Matrix second = Matrix::Zero(keys.cols(), keys.cols());
    add_weighted_gram(keys, members[c].keys, members[c].shares, second, sum);
    fit.weights(c) = weight / n;
    fit.means[c] = sum / weight;
    fit.covs[c] = second / weight - fit.means[c] * fit.means[c].transpose();
    fit.covs[c].diagonal().array() += fit.floor;
  }
  fit.weights /= fit.weights.sum();
}

// What turns a component's log density into a sum of squares: (key - m)' C^-1 (key - m) =
// |W' key - W' m|^2 with W W' = C^-1.
struct Whitening {
  Matrix W;         // [d,d] upper triangular
  Vector centre;    // W' m [d]
  double constant;  // log w - log det C / 2 - d/2 log 2 pi

  Whitening(double weight, const Vector& mean, const Matrix& cov) {
    double log_determinant = 0;
    W = inverse_factor(cov, log_determinant);
    centre = W.transpose() * mean;
    constant = std::log(weight) - 0.5 * log_determinant -
               0.5 * static_cast<double>(mean.size()) * std::log(2 * std::numbers::pi);
  }
};

std::vector<Whitening> whitenings(const MixtureFit& fit) {
  std::vector<Whitening> out;
  for (Index c = 0; c < fit.size(); ++c) {
    out.emplace_back(fit.weights(c), fit.means[c], fit.covs[c]);
  }
  return out;
}

// log w_c + log N(key_l; m_c, C_c) [n,k].
Matrix log_joint(const MixtureFit& fit, const MatrixView& keys) {
  const std::vector<Whitening> components = whitenings(fit);
  Matrix out(keys.rows(), fit.size());
  for (Index first = 0; first < keys.rows(); first += kBlock) {
    check_stop();
    const Index rows = std::min(kBlock, keys.rows() - first);
    for (Index c = 0; c < fit.size(); ++c) {
      const Vector squares =
          whitened_squares(keys.middleRows(first, rows), components[c].W, components[c].centre);
      out.col(c).segment(first, rows) = components[c].constant - 0.5 * squares.array();
    }
  }
  return out;
}

// The same where r >= least only, -infinity elsewhere.
Matrix log_joint_where(const MixtureFit& fit, const MatrixView& keys, const Matrix& r,
                       double least) {
  Matrix out = Matrix::Constant(r.rows(), r.cols(), -std::numeric_limits<double>::infinity());
  const std::vector<Whitening> components = whitenings(fit);
  const std::vector<Members> members = members_of(r, least);
  for (Index c = 0; c < fit.size(); ++c) {
    const std::vector<Index>& rows = members[c].keys;
    const Vector squares = whitened_squares(keys, rows, components[c].W, components[c].centre);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      out(rows[i], c) = components[c].constant - 0.5 * squares(static_cast<Index>(i));
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

void expect(const MatrixView& keys, State& state) {
  state.r = log_joint(state.fit, keys);
  state.fit.log_likelihood = normalise(state.r);
}

// Only over the pairs with r >= least: the log-likelihood becomes a lower bound of it.
void expect_where(const MatrixView& keys, const Matrix& r, double least, State& state) {
  state.r = log_joint_where(state.fit, keys, r, least);
  state.fit.log_likelihood = normalise(state.r);
}

void maximise(const MatrixView& keys, State& state) {
  check_stop();
  maximise(keys, state.r, state.fit);
  ++state.fit.steps;
}

// Some sparse steps and a wider one, at most `most` together.
void round(const MatrixView& keys, int most, double tolerance, State& state) {
  const Matrix wide = state.r;
  double before = -std::numeric_limits<double>::infinity();
  for (int step = 0; step < std::min(kSparseSteps, most - 1); ++step) {
    maximise(keys, state);
    expect_where(keys, state.r, kPlausible, state);
    if (state.fit.log_likelihood - before < tolerance) break;
    before = state.fit.log_likelihood;
  }
  maximise(keys, state);
  expect_where(keys, wide, kPossible, state);
}

// EM from the parameters until a round of steps, judged by a full E-step, gains less than tolerance
// per step. The floor is not part of the likelihood, so a round may lose; then the one before it is
// the result.
MixtureFit climb(const MatrixView& keys, const MixtureFitOptions& options, State state) {
  expect(keys, state);
  while (!state.fit.converged && state.fit.steps < options.max_iterations) {
    const MixtureFit before = state.fit;
    round(keys, options.max_iterations - before.steps, options.tolerance, state);
    const int steps = state.fit.steps;
    const double least = before.log_likelihood + options.tolerance * (steps - before.steps);
    if (state.fit.log_likelihood < least || steps == options.max_iterations) expect(keys, state);
    const bool converged = state.fit.log_likelihood < least;
    if (state.fit.log_likelihood < before.log_likelihood) state.fit = before;
    state.fit.steps = steps;
    state.fit.converged = converged;
  }
  return state.fit;
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
    maximise(keys, state.r, state.fit);
    expect_where(keys, state.r, kPlausible, state);
    if (attempt == 0 || state.fit.log_likelihood > best.fit.log_likelihood) {
      best = std::move(state);
    }
  }
  return climb(keys, options, std::move(best));
}

Matrix responsibilities(const MixtureFit& fit, const MatrixView& keys) {
  Matrix r = log_joint(fit, keys);
  normalise(r);
  return r;
}

}  // namespace esscher
