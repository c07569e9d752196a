#include "esscher/task/linear_family.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"
#include "esscher/task/regression.h"

namespace esscher {
namespace {

// Without noise, labels are taken to carry this share of their variance as noise.
constexpr double kExactFit = 1e-12;

// The sets of k among d coordinates, in lexicographic order; none beyond kMostSupports.
std::vector<std::vector<Index>> supports_of(Index d, Index k) {
  std::vector<std::vector<Index>> out;
  std::vector<Index> set(static_cast<std::size_t>(k));
  for (Index i = 0; i < k; ++i) set[static_cast<std::size_t>(i)] = i;
  for (;;) {
    if (static_cast<Index>(out.size()) == kMostSupports) return {};
    out.push_back(set);
    Index i = k - 1;
    while (i >= 0 && set[static_cast<std::size_t>(i)] == d - k + i) --i;
    if (i < 0) return out;
    ++set[static_cast<std::size_t>(i)];
    for (Index j = i + 1; j < k; ++j) {
      set[static_cast<std::size_t>(j)] = set[static_cast<std::size_t>(j) - 1] + 1;
    }
  }
}

// Factors F_S [d,r] of the covariances of w, one per set: w = F_S g. Rows outside S are 0.
std::vector<Matrix> factors_of(const LinearFamilyTask& task) {
  const Index d = task.cov.rows();
  const Index k = task.nonzero > 0 ? task.nonzero : d;
  std::vector<Matrix> out;
  for (const std::vector<Index>& set : supports_of(d, k)) {
    Matrix F = Matrix::Zero(d, k);
    F(set, Eigen::all) = psd_sqrt("task", "task_cov", task.task_cov(set, set));
    out.push_back(std::move(F));
  }
  return out;
}

// The covariance of w: of each pair of coordinates the share of sets that hold both.
Matrix covariance_of(const std::vector<Matrix>& factors) {
  Matrix out = Matrix::Zero(factors[0].rows(), factors[0].rows());
  for (const Matrix& F : factors) out += F * F.transpose();
  return out / static_cast<double>(factors.size());
}

// E[w | X, y, S] and log p(y | X, S) up to a constant, with A = X F_S and s2 the noise: by
// A'A = E diag(l) E',  the mean is F E diag(1/(l + s2)) E'A'y.
struct Fit {
  Vector w;
  double log_density = 0;
};

Fit fit(const Matrix& F, const Matrix& X, const Vector& y, double s2) {
  const Matrix A = X * F;
  const Eigensystem system = eigensystem(Matrix(A.transpose() * A));
  const Vector inner = system.vectors.transpose() * (A.transpose() * y);
  const Vector damped = system.values.cwiseMax(0.0).array() + s2;
  // y'(A A' + s2 I)^{-1} y = (|y|^2 - inner' diag(1/(l + s2)) inner) / s2
  const double square = (y.squaredNorm() - (inner.array().square() / damped.array()).sum()) / s2;
  const double log_det = (damped.array() / s2).log().sum();
  return {F * (system.vectors * inner.cwiseQuotient(damped)), -0.5 * (square + log_det)};
}

double noise_of(double noise, const Vector& y) {
  return std::max({noise, kExactFit * y.squaredNorm(), 1e-300});
}

Vector posterior_w(const std::vector<Matrix>& factors, const Matrix& prompt, double noise) {
  const Index d = prompt.cols() - 1;
  const Matrix X = prompt.leftCols(d);
  const Vector y = prompt.col(d);
  const double s2 = noise_of(noise, y);
  std::vector<Fit> fits;
  for (const Matrix& F : factors) fits.push_back(fit(F, X, y, s2));
  double best = fits[0].log_density;
  for (const Fit& one : fits) best = std::max(best, one.log_density);
  Vector out = Vector::Zero(d);
  double sum = 0;
  for (const Fit& one : fits) {
    const double weight = std::exp(one.log_density - best);
    sum += weight;
    out += weight * one.w;
  }
  return out / sum;
}

// The covariance of the features of one prompt, and how many normals it takes.
struct DrawnCovariance {
  CovarianceLaw law;
  Matrix cov, root;
  double deviation;
  Index degrees;

  [[nodiscard]] Index normals() const {
    if (law == CovarianceLaw::fixed) return 0;
    return law == CovarianceLaw::scale ? 1 : degrees * cov.rows();
  }
  [[nodiscard]] Matrix at(const VectorView& g) const {
    if (law == CovarianceLaw::fixed) return cov;
    if (law == CovarianceLaw::scale) {
      return std::exp(deviation * g[0] - 0.5 * deviation * deviation) * cov;
    }
    const Matrix G = Eigen::Map<const Matrix>(g.data(), degrees, cov.rows()) * root;
    return G.transpose() * G / static_cast<double>(degrees);
  }
};

}  // namespace

Vector ridge_mean(const Matrix& factor, const Matrix& X, const Vector& y, double noise) {
  return fit(factor, X, y, noise_of(noise, y)).w;
}

void LinearFamilyTask::check() const {
  const Index d = cov.rows();
  if (d < 1) throw_argument("task", "dim", "0", "an integer >= 1");
  (void)psd_factor("task", "prompt_cov", cov);
  check_dimension("task", "task_cov", task_cov.rows(), d);
  (void)psd_factor("task", "task_cov", task_cov);
  if (nonzero < 0 || nonzero > d) {
    throw_argument("task", "nonzero", std::to_string(nonzero), "1 to " + std::to_string(d));
  }
  if (nonzero > 0 && supports_of(d, nonzero).empty()) {
    throw_argument("task", "nonzero", std::to_string(nonzero),
                   "at most " + std::to_string(kMostSupports) + " sets of that many among " +
                       std::to_string(d) + " coordinates");
  }
  if (!(scale_deviation >= 0)) {
    throw_argument("task", "scale_deviation", to_text(scale_deviation), "a number >= 0");
  }
  if (degrees < 0) throw_argument("task", "degrees", std::to_string(degrees), "an integer >= 1");
  if (!(noise_variance >= 0)) {
    throw_argument("task", "noise_variance", to_text(noise_variance), "a number >= 0");
  }
}

ContextTask linear_family_task(const LinearFamilyTask& task) {
  task.check();
  const Index d = task.cov.rows();
  const std::vector<Matrix> factors = factors_of(task);
  const Index k = factors[0].cols();
  const DrawnCovariance drawn{task.cov_law, task.cov, psd_sqrt("task", "prompt_cov", task.cov),
                              task.scale_deviation, task.degrees > 0 ? task.degrees : 2 * d};
  const double noise = task.noise_variance;
  ContextTask out;
  out.type = TaskType::linear;
  out.token_dim = d + 1;
  out.law_normals = k + drawn.normals();
  out.query_normals = d;
  out.strata = Vector::Constant(static_cast<Index>(factors.size()),
                                1.0 / static_cast<double>(factors.size()));
  out.node = [=, query_noise = task.query_noise](const VectorView& normals, Index set) {
    const Vector w = factors[static_cast<std::size_t>(set)] * normals.head(k);
    const Matrix C = drawn.at(normals.segment(k, drawn.normals()));
    LinearRegressionTask regression = LinearRegressionTask::with_covariance(C);
    regression.noise_variance = noise;
    const Matrix root =
        drawn.law == CovarianceLaw::fixed ? drawn.root : psd_sqrt("task", "prompt_cov", C);
    const Vector x = root * normals.tail(d);
    ContextNode node{std::make_shared<const TokenLaw>(SharedMixture{
                         Vector::Ones(1), Matrix::Zero(1, d + 1), token_covariance(regression, w)}),
                     Vector::Zero(d + 1), Vector::Constant(1, w.dot(x)), query_noise ? noise : 0};
    node.query.head(d) = x;
    return node;
  };
  out.target = [](const ContextNode& node, const Stream& stream) {
    return Vector::Constant(1, node.target[0] + std::sqrt(node.variance) * stream.normal(0)).eval();
  };
  QueryMoments moments{Vector::Zero(d + 1), Matrix::Zero(d + 1, d + 1), Vector::Zero(1),
                       Matrix::Zero(1, d + 1), 0};
  moments.zz.topLeftCorner(d, d) = task.cov;
  moments.tt = task.cov.cwiseProduct(covariance_of(factors)).sum() + (task.query_noise ? noise : 0);
  out.moments = [moments](const Stream&) { return moments; };
  out.posterior_mean = [factors, noise, d](const Matrix& prompt, const Vector& query) {
    return Vector::Constant(1, posterior_w(factors, prompt, noise).dot(query.head(d))).eval();
  };
  return out;
}

}  // namespace esscher
