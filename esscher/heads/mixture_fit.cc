#include "esscher/heads/mixture_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "esscher/base/error.h"
#include "esscher/simd/gemm.h"

namespace esscher {
namespace {

// Keys whose responsibility is below this do not enter a component's sums. In high dimension nearly
// every key belongs to one component, so this makes the M-step cost one pass, not k.
constexpr double kNegligible = 1e-9;
constexpr int kLloydSteps = 5;

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
    nearest = nearest.cwiseMin((keys.rowwise() - centres.row(c)).rowwise().squaredNorm());
  }
  return centres;
}

// Hard responsibilities [n,k] after a few Lloyd steps from `centres`.
Matrix lloyd(const MatrixView& keys, Matrix centres) {
  const Index n = keys.rows();
  const Index k = centres.rows();
  Matrix assignment;
  for (int step = 0; step < kLloydSteps; ++step) {
    const Matrix products = keys * centres.transpose();
    const Vector half_norms = 0.5 * centres.rowwise().squaredNorm();
    assignment = Matrix::Zero(n, k);
    for (Index l = 0; l < n; ++l) {
      Index best = 0;
      (products.row(l).transpose() - half_norms).maxCoeff(&best);
      assignment(l, best) = 1;
    }
    const Vector counts = assignment.colwise().sum();
    const Matrix sums = assignment.transpose() * keys;
    for (Index c = 0; c < k; ++c) {
      if (counts(c) > 0) centres.row(c) = sums.row(c) / counts(c);
    }
  }
  return assignment;
}

// M-step: weights, means and covariances from responsibilities [n,k].
void maximise(const MatrixView& keys, const Matrix& r, MixtureFit& fit) {
  const Index n = keys.rows();
  const Index d = keys.cols();
  Matrix rows(n, d);
  for (Index c = 0; c < r.cols(); ++c) {
    const double weight = r.col(c).sum();
    if (weight < 1e-6) {  // an empty component keeps its place and fades
      fit.weights(c) = 1e-12;
      continue;
    }
    fit.weights(c) = weight / static_cast<double>(n);
    fit.means[c] = keys.transpose() * r.col(c) / weight;
    Index used = 0;
    for (Index l = 0; l < n; ++l) {
      if (r(l, c) < kNegligible) continue;
      rows.row(used++) = std::sqrt(r(l, c)) * (keys.row(l) - fit.means[c].transpose());
    }
    Matrix cov = Matrix::Zero(d, d);
    add_gram(rows.topRows(used), rows.topRows(used), cov);
    fit.covs[c] = cov / weight;
    fit.covs[c].diagonal().array() += fit.floor;
  }
  fit.weights /= fit.weights.sum();
}

// log w_c + log N(key_l; m_c, C_c) [n,k].
Matrix log_joint(const MixtureFit& fit, const MatrixView& keys) {
  const Index d = keys.cols();
  Matrix out(keys.rows(), fit.size());
  for (Index c = 0; c < fit.size(); ++c) {
    const Eigen::LLT<Matrix> cholesky(fit.covs[c]);
    const Matrix L = cholesky.matrixL();
    // (key - m)' C^-1 (key - m) = |W' (key - m)|^2 with W = L^-T [d,d].
    const Matrix W = L.triangularView<Eigen::Lower>().solve(Matrix::Identity(d, d)).transpose();
    Matrix white = Matrix::Zero(keys.rows(), d);
    add_product(keys.rowwise() - fit.means[c].transpose(), W, white);
    const double constant = std::log(fit.weights(c)) - L.diagonal().array().log().sum() -
                            0.5 * static_cast<double>(d) * std::log(2 * std::numbers::pi);
    out.col(c) = (-0.5 * white.rowwise().squaredNorm()).array() + constant;
  }
  return out;
}

// E-step in place: log joint [n,k] to responsibilities; returns the mean log-likelihood.
double normalise(Matrix& log_r) {
  double total = 0;
  for (Index l = 0; l < log_r.rows(); ++l) {
    const double top = log_r.row(l).maxCoeff();
    const double lse = top + std::log((log_r.row(l).array() - top).exp().sum());
    total += lse;
    log_r.row(l) = (log_r.row(l).array() - lse).exp();
  }
  return total / static_cast<double>(log_r.rows());
}

// Up to `steps` EM steps; leaves the log-likelihood of the parameters before the last M-step.
void iterate(const MatrixView& keys, int steps, double tolerance, MixtureFit& fit) {
  double before = -std::numeric_limits<double>::infinity();
  for (int step = 0; step < steps; ++step) {
    Matrix r = log_joint(fit, keys);
    fit.log_likelihood = normalise(r);
    maximise(keys, r, fit);
    if (fit.log_likelihood - before < tolerance) return;
    before = fit.log_likelihood;
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
  MixtureFit best = start;
  const int restarts = k == 1 ? 1 : options.restarts;
  for (int attempt = 0; attempt < restarts; ++attempt) {
    MixtureFit fit = start;
    maximise(keys, lloyd(keys, plus_plus(keys, k, stream.split(attempt))), fit);
    iterate(keys, options.short_iterations, options.tolerance, fit);
    if (attempt == 0 || fit.log_likelihood > best.log_likelihood) best = fit;
  }
  iterate(keys, options.max_iterations, options.tolerance, best);
  return best;
}

Matrix responsibilities(const MixtureFit& fit, const MatrixView& keys) {
  Matrix r = log_joint(fit, keys);
  normalise(r);
  return r;
}

}  // namespace esscher
