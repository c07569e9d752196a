#include "esscher/concentration/square_law.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/base/parallel.h"
#include "esscher/concentration/constant.h"
#include "esscher/measure/empirical.h"
#include "esscher/measure/stationary.h"
#include "esscher/random/stream.h"

namespace esscher {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Tokens that stand for the law where no closed form is used: the same ones at every query and for
// every seed of a study, so that flags are a property of the problem.
Matrix law_tokens(const AnyMeasure& mu, Index queries) {
  const Index count = std::clamp<Index>(65536 / std::max<Index>(queries, 1), 512, 4096);
  return mu.sample(Stream(0x5A17).split(1), count).tokens();
}

// 2 tr S^2 / (tr S)^2 of the metrics of the mean.
double variance_of_mean_metric(const MetricForm& form, const AnyMeasure& mu, const Vector& a) {
  const Vector b = 2 * a;
  const Vector delta = mu.mean_shift(b) - mu.mean_shift(a);
  const Matrix S = form.left.gram(mu.dim()) * (mu.tilted_cov(b) + delta * delta.transpose());
  const double trace = S.trace();
  return trace > 0 ? 2 * (S * S).trace() / (trace * trace) : 2.0;
}

// Metrics of the covariance, by tokens. With W = left' left, Y = right' right and independent G, G',
//   <G,G'> = (y'W y')(y'Y y') - y'W C Y y - y''W C Y y' + tr(C W C Y).
class CovarianceErrors {
 public:
  CovarianceErrors(const MetricForm& form, const AnyMeasure& mu, const Vector& a,
                   const Matrix& tokens)
      : y_(tokens.rowwise() - mu.tilted_mean(a).transpose()) {
    const Matrix W = form.left.gram(mu.dim()), Y = form.right.gram(mu.dim());
    const Matrix C = mu.tilted_cov(a);
    yW_ = y_ * W;
    yY_ = y_ * Y;
    mixed_ = (yW_ * C).cwiseProduct(yY_).rowwise().sum();
    constant_ = (C * W * C * Y).trace();
    const Vector score = 2 * (tokens * a);
    u_ = (score.array() - score.maxCoeff()).exp();  // w^2 up to a factor
    size_ = Vector(y_.rows());
    for (Index i = 0; i < size_.size(); ++i) size_[i] = product(i, i);
  }
  // E <G,G'>^2 / (E |G|^2)^2, times 2, both over the same pairs: by Cauchy and Schwarz at most 2.
  [[nodiscard]] double relative_variance() const {
    const Index n = y_.rows();
    double sizes = 0, squares = 0;
    for (const Index shift : std::array<Index, 6>{1, 5, 23, 101, 211, 409}) {
      for (Index i = 0; i < n; ++i) {
        const Index j = (i + shift) % n;
        const double weight = u_[i] * u_[j], p = product(i, j);
        sizes += weight * size_[i] * size_[j];
        squares += weight * p * p;
      }
    }
    return sizes > 0 ? std::min(2.0, 2 * squares / sizes) : 2.0;
  }
  [[nodiscard]] double heaviness() const {
    const Vector square = u_.cwiseProduct(size_);
    const double total = square.sum();
    return total > 0 ? static_cast<double>(y_.rows()) * square.squaredNorm() / (total * total) : 0;
  }

 private:
  [[nodiscard]] double product(Index i, Index j) const {
    return yW_.row(i).dot(y_.row(j)) * yY_.row(i).dot(y_.row(j)) - mixed_[i] - mixed_[j] +
           constant_;
  }

  Matrix y_, yW_, yY_;
  Vector mixed_, u_, size_;
  double constant_ = 0;
};

double first_error(const MetricForm& form, const Problem& p, const Vector& z, const Vector& a) {
  if (form.of_covariance) {
    return form.factor(z) * form.covariance_norm2(p.attention.V() * p.mu.tilted_cov(a));
  }
  const Vector shift = p.mu.mean_shift(a);
  const Matrix C = p.mu.tilted_cov(Vector::Zero(a.size()));
  return form.factor(z) * ((form.left.gram(a.size()) * C).trace() + form.mean_norm2(shift));
}

ErrorLaw law_at(Metric metric, const Problem& p, const Vector& z, const Matrix& tokens) {
  const MetricForm form = metric_form(metric, p.attention);
  const Vector a = p.attention.tilt(z);
  ErrorLaw law{.constant = asymptotic_constant(metric, p.mu, p.attention, z)};
  if (!std::isfinite(law.constant)) return law;
  if (is_dependent(p.mu)) {
    const double alone = independent_constant(metric, p.mu, p.attention, z);
    if (alone > 0) law.kappa = std::max(1.0, law.constant / alone);
  }
  if (form.of_covariance) {
    const CovarianceErrors errors(form, p.mu, a, tokens);
    law.relative_variance = errors.relative_variance();
    law.heaviness = errors.heaviness();
  } else {
    law.relative_variance = variance_of_mean_metric(form, p.mu, a);
  }
  law.first = first_error(form, p, z, a);
  const double log_mean = p.mu.log_mgf(a);
  law.sharpness = p.mu.centred_log_mgf(2 * a) - 2 * p.mu.centred_log_mgf(a);
  try {
    law.kurtosis = p.mu.centred_log_mgf(4 * a) - 2 * p.mu.centred_log_mgf(2 * a);
  } catch (const DomainError&) {
    law.kurtosis = kInfinite;
  }
  const double light = log_mean + std::log(0.25);
  law.light = static_cast<double>(((tokens * a).array() < light).count()) /
              static_cast<double>(tokens.rows());
  return law;
}

}  // namespace

std::string ErrorLaw::flag(std::int64_t L) const {
  const double length = static_cast<double>(L) / kappa;
  if (std::isnan(constant)) return "how these tokens depend on each other is not known";
  if (!std::isfinite(constant)) {
    return "the weights of tokens have no second moment, so that no number of prompts shows the "
           "error";
  }
  if (!std::isfinite(kurtosis)) {
    return "the weights of tokens have no fourth moment, so that rare prompts carry the error";
  }
  // Measured coverage at and beyond these limits: docs/calibration.md.
  if (sharpness > 0.8 && std::exp(kurtosis) > 0.03 * length) {
    return "scores are sharp (variance " + brief(sharpness, 3) +
           ") and the prompt is short: rare prompts carry the error";
  }
  if (heaviness > 0.5 * length) {
    return "the prompt is short for an error of a covariance: rare tokens carry it";
  }
  if (std::pow(light, length) * first * length * kappa > 0.02 * constant) {
    return "rare prompts without any heavy token carry the error";
  }
  return {};
}

std::vector<ErrorLaw> error_laws(Metric metric, const Problem& problem, const Matrix& queries) {
  const Matrix tokens = law_tokens(problem.mu, queries.rows());
  std::vector<ErrorLaw> laws(static_cast<std::size_t>(queries.rows()));
  parallel_for(queries.rows(), [&](std::int64_t q) {
    laws[static_cast<std::size_t>(q)] = law_at(metric, problem, queries.row(q).transpose(), tokens);
  });
  return laws;
}

SquareLaw square_law(const std::vector<ErrorLaw>& laws) {
  const Index n = static_cast<Index>(laws.size());
  SquareLaw out{.means = Vector(n), .relative_variances = Vector(n)};
  const bool known = std::all_of(laws.begin(), laws.end(),
                                 [](const ErrorLaw& l) { return std::isfinite(l.constant); });
  for (Index q = 0; q < n; ++q) {
    const ErrorLaw& law = laws[static_cast<std::size_t>(q)];
    out.means[q] = known ? law.constant : 1.0;
    out.relative_variances[q] = law.relative_variance;
  }
  // Where every error is zero the queries count the same.
  if (!(out.means.sum() > 0)) out.means.setOnes();
  return out;
}

std::string average_flag(const std::vector<ErrorLaw>& laws, std::int64_t L) {
  double total = 0, flagged = 0;
  std::string first;
  for (const ErrorLaw& law : laws) {
    const std::string why = law.flag(L);
    total += law.constant;
    if (why.empty()) continue;
    flagged += law.constant;
    if (first.empty()) first = why;
  }
  // An infinite constant is more than any share.
  const bool few = std::isfinite(flagged) && flagged <= 0.05 * total;
  return few ? std::string() : first;
}

}  // namespace esscher
