#include "esscher/measure/sub_gaussian.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "esscher/base/eigensystem.h"

namespace esscher {
namespace {

constexpr int kMaxIterations = 200;
constexpr double kConverged = 1e-14;
constexpr Index kSampleTokens = 64;
constexpr Index kMaxAxes = 16;
constexpr std::size_t kAscents = 12;

double ratio(const AnyMeasure& mu, const Vector& a) {
  const double square = a.squaredNorm();
  return square > 0 ? 2.0 * mu.centred_log_mgf(a) / square : 0.0;
}

// Iterates a -> (m_a - m)/f(a) to its fixed point. f never decreases on the way.
double ascend(const AnyMeasure& mu, Vector a) {
  double best = ratio(mu, a);
  for (int step = 0; step < kMaxIterations && best > 0; ++step) {
    a = (mu.mean_shift(a) / best).eval();
    if (!a.allFinite()) break;
    const double next = ratio(mu, a);
    if (!(next > best * (1 + kConverged))) return std::max(best, next);
    best = next;
  }
  return best;
}

struct Start {
  Vector a;
  double value = 0;
};

// The best radius along u on a coarse grid; u has length 1/sqrt(variance).
Start best_radius(const AnyMeasure& mu, const Vector& u) {
  Start best{u, 0};
  for (double radius = 0.125; radius < 1e5; radius *= 2) {
    const double value = ratio(mu, radius * u);
    if (value > best.value) best = {radius * u, value};
  }
  return best;
}

// Unit directions to start from. The caller tries both signs.
std::vector<Vector> directions(const AnyMeasure& mu, const Matrix& cov) {
  const Eigensystem system = eigensystem(cov);
  std::vector<Vector> list;
  for (Index i = 0; i < std::min(mu.dim(), kMaxAxes); ++i) {
    list.emplace_back(system.vectors.col(mu.dim() - 1 - i));
  }
  const Empirical sample = mu.sample(Stream(0), kSampleTokens);
  for (Index l = 0; l < sample.size(); ++l) {
    const Vector offset = sample.tokens().row(l).transpose() - mu.mean();
    if (offset.norm() > 0) list.emplace_back(offset.normalized());
  }
  return list;
}

}  // namespace

double numeric_sub_gaussian(const AnyMeasure& mu) {
  const Vector origin = Vector::Zero(mu.dim());
  const Matrix cov = mu.tilted_cov(origin);
  const double variance = std::max(0.0, max_eigenvalue(cov));
  if (variance == 0) return 0.0;
  std::vector<Start> starts;
  for (const Vector& u : directions(mu, cov)) {
    for (const double sign : {1.0, -1.0}) {
      starts.push_back(best_radius(mu, (sign / std::sqrt(variance)) * u));
    }
  }
  std::sort(starts.begin(), starts.end(),
            [](const Start& x, const Start& y) { return x.value > y.value; });
  double best = variance;
  for (std::size_t i = 0; i < std::min(starts.size(), kAscents); ++i) {
    best = std::max(best, ascend(mu, starts[i].a));
  }
  return std::sqrt(best);
}

}  // namespace esscher
