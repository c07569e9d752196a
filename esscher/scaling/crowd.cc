#include "esscher/scaling/crowd.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/score_law.h"

namespace esscher {

Crowd::Crowd(Vector scores, Vector weights, double needle)
    : s_(std::move(scores)), p_(std::move(weights)), needle_(needle) {}

Crowd Crowd::of_scores(Vector scores, double needle) {
  if (scores.size() == 0) throw_argument("crowd", "scores", "none", "at least one");
  if (!scores.allFinite() || !std::isfinite(needle)) {
    throw_argument("crowd", "scores", "not finite", "finite numbers");
  }
  const Vector p = Vector::Constant(scores.size(), 1 / static_cast<double>(scores.size()));
  return {std::move(scores), p, needle};
}

Crowd Crowd::gaussian(double mean, double tau, double needle) {
  if (!(tau > 0)) return of_scores(Vector::Constant(1, mean), needle);
  const PanelRule rule = normal_rule(4 * tau);
  return {(mean + tau * rule.x.array()).matrix(), rule.w / rule.w.sum(), needle};
}

namespace {

// Many scores are moved to a lattice, which keeps the averages of the functions below (score_law.h).
struct Nodes {
  Eigen::ArrayXd s, p;
};
Nodes scaled(const Vector& s, const Vector& p, double f) {
  if (s.size() <= kMaxNodes) return {f * s.array(), p.array()};
  const ScoreLaw law = compacted(
      score_nodes(f * s, p, Matrix::Zero(s.size(), 1), Vector::Zero(s.size()), Vector::Zero(1)));
  return {law.s.array(), law.p.array()};
}

}  // namespace

Crowd::Weights Crowd::at(double N, double f) const {
  constexpr double kStep = 0.25, kEnd = 1e-14;
  const Nodes nodes = scaled(s_, p_, f);
  const Eigen::ArrayXd &scores = nodes.s, &p = nodes.p;
  const double c = f * needle_;
  // From the right, where either the needle's y or every other one is e^4 and nothing is left.
  double u = 4 - std::max(c, scores.minCoeff());
  Weights out;
  for (int i = 0; i < 100000; ++i, u -= kStep) {
    // At y = e^20 its functions have vanished; larger ones would overflow.
    const Eigen::ArrayXd y = (scores + u).min(20.0).exp(), decay = (-y).exp();
    const double own = std::exp(std::min(c + u, 20.0));
    // psi matters to N psi only, so that the digits that 1 - e^-y loses below 1e-8 are not missed.
    const double small = (p * y).sum();
    const double psi = small < 1e-8 ? small : (p * (1 - decay)).sum();
    const double log_phi = std::log1p(-std::min(psi, 1 - 1e-16));
    const double alone = std::exp(-own);
    const double rest = std::exp((N - 2) * log_phi) * alone, phi = std::exp(log_phi);
    const double pair = (p * y.square() * decay).sum();
    const double H = (N - 1) * pair * rest + own * own * phi * rest;
    const double needle = own * phi * rest;
    out.H += H;
    out.needle += needle;
    const bool left = (N - 1) * small + own < 1e-3;
    if (left && H < kEnd * out.H && needle < kEnd * out.needle) break;
  }
  out.H = std::min(1.0, kStep * out.H);
  out.needle = std::min(1.0, kStep * out.needle);
  return out;
}

std::optional<double> Crowd::factor_for(double ess, double N) const {
  constexpr double kLimit = 64;
  const auto sharper = [&](double x) { return at(N, std::exp(x)).H * ess >= 1; };
  double low = 0, high = 0;
  const double end = std::log(kLimit);
  if (sharper(0)) {
    while (low > -end && sharper(low)) high = std::exchange(low, low - 0.25);
    if (low <= -end) return std::nullopt;
  } else {
    while (high < end && !sharper(high)) low = std::exchange(high, high + 0.25);
    if (high >= end) return std::nullopt;
  }
  // Regula falsi with halved ends (Illinois) on log H, which is nearly straight in log f.
  const auto value = [&](double x) { return std::log(at(N, std::exp(x)).H * ess); };
  double a = value(low), b = value(high), middle = high;
  for (int i = 0; i < 60 && high - low > 1e-9; ++i) {
    middle = high - b * (high - low) / (b - a);
    const double v = value(middle);
    if (std::abs(v) < 1e-9) break;
    if (v < 0) {
      low = middle;
      a = v;
      b *= 0.5;
    } else {
      high = middle;
      b = v;
      a *= 0.5;
    }
  }
  return std::exp(middle);
}

}  // namespace esscher
