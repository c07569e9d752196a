#include "esscher/task/token_law.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/score_law.h"

namespace esscher {
namespace {

AnyMeasure measure_of(const SharedMixture& law) {
  if (law.count() == 1) return Gaussian(law.means.row(0).transpose(), law.cov);
  std::vector<AnyMeasure> parts;
  for (Index k = 0; k < law.count(); ++k) {
    parts.emplace_back(Gaussian(law.means.row(k).transpose(), law.cov));
  }
  return Mixture(law.weights, std::move(parts));
}

constexpr double kReach = 9;  // deviations of H that nodes cover

// A panel has 20 nodes (panel_rule). It is 4 deviations of H wide, and 4 wide in the score, or wider
// where what is left of the score is Gaussian and smooths it. Functions that are analytic in the
// strip |Im| < pi/2 are then integrated to 1e-12.
double panel_width(double rho, double slope, double tau) {
  const double by_score = 4 * std::max(1.0, tau / 2) / std::max(slope, 1e-300);
  return std::min(4 * rho, by_score);
}

SharedMixture nodes_of(const SingleIndex& law, const VectorView& a) {
  const Index d = law.index().size();
  const double rho = law.rho(), beta = a[d];
  const Vector direction = law.cov() * law.index() / (rho * rho);  // d x / d H
  Matrix S = Matrix::Zero(d + 1, d + 1);
  S.topLeftCorner(d, d) = law.cov() - rho * rho * direction * direction.transpose();
  S(d, d) = law.noise_variance();
  const double slope =
      std::abs(a.head(d).dot(direction)) + std::abs(beta) * std::max(law.link().slope(), 1 / rho);
  const double tau = std::sqrt(std::max(a.dot(S * a), 0.0));
  std::vector<double> ends{-kReach * rho, kReach * rho};
  for (const double kink : law.link().kinks()) {
    if (std::abs(kink) < kReach * rho) ends.push_back(kink);
  }
  std::sort(ends.begin(), ends.end());
  std::vector<double> H, p;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    const PanelRule rule = panel_rule(ends[i], ends[i + 1], panel_width(rho, slope, tau));
    for (Index j = 0; j < rule.x.size(); ++j) {
      const double x = rule.x[j] / rho, weight = rule.w[j] * std::exp(-x * x / 2);
      if (weight < 1e-20 * rho) continue;
      H.push_back(rule.x[j]);
      p.push_back(weight);
    }
  }
  const auto K = static_cast<Index>(H.size());
  SharedMixture out{Vector::Map(p.data(), K), Matrix(K, d + 1), std::move(S)};
  out.weights /= out.weights.sum();
  for (Index k = 0; k < K; ++k) {
    const double h = H[static_cast<std::size_t>(k)];
    out.means.row(k).head(d) = h * direction;
    out.means(k, d) = law.link()(h);
  }
  return out;
}

}  // namespace

struct TokenLaw::Measure {
  std::once_flag once;
  std::optional<AnyMeasure> law;
};

TokenLaw::TokenLaw(SharedMixture mixture) : measure_(std::make_shared<Measure>()) {
  check_dimension("token law", "weights", mixture.weights.size(), mixture.means.rows());
  check_dimension("token law", "cov", mixture.cov.rows(), mixture.dim());
  check_dimension("token law", "cov (columns)", mixture.cov.cols(), mixture.dim());
  source_ = std::make_shared<const SharedMixture>(std::move(mixture));
}

TokenLaw::TokenLaw(const SingleIndex& law)
    : source_(std::make_shared<const SingleIndex>(law)), measure_(std::make_shared<Measure>()) {}

const AnyMeasure& TokenLaw::measure() const {
  std::call_once(measure_->once, [&] {
    if (const auto mixture = shared()) {
      measure_->law.emplace(measure_of(*mixture));
    } else {
      measure_->law.emplace(*std::get<std::shared_ptr<const SingleIndex>>(source_));
    }
  });
  return *measure_->law;
}

Index TokenLaw::dim() const {
  const auto mixture = shared();
  return mixture ? mixture->dim() : std::get<std::shared_ptr<const SingleIndex>>(source_)->dim();
}

std::shared_ptr<const SharedMixture> TokenLaw::shared() const {
  const auto* mixture = std::get_if<std::shared_ptr<const SharedMixture>>(&source_);
  return mixture == nullptr ? nullptr : *mixture;
}

std::shared_ptr<const SharedMixture> TokenLaw::mixture(const VectorView& a) const {
  if (const auto* mixture = std::get_if<std::shared_ptr<const SharedMixture>>(&source_)) {
    return *mixture;
  }
  const SingleIndex& law = *std::get<std::shared_ptr<const SingleIndex>>(source_);
  check_dimension("token law", "tilt", a.size(), law.dim());
  if (law.rho() > 0) return std::make_shared<const SharedMixture>(nodes_of(law, a));
  // w'x = 0: the label is g(0) and noise.
  const Index d = law.index().size();
  SharedMixture out{Vector::Ones(1), Matrix::Zero(1, d + 1), Matrix::Zero(d + 1, d + 1)};
  out.means(0, d) = law.link()(0);
  out.cov.topLeftCorner(d, d) = law.cov();
  out.cov(d, d) = law.noise_variance();
  return std::make_shared<const SharedMixture>(std::move(out));
}

}  // namespace esscher
