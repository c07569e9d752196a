#include "esscher/scaling/crowd.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/detail/stencil.h"
#include "esscher/measure/score_law.h"

namespace esscher {

// Masses p at the scores step * (start + i).
struct Crowd::Lattice {
  double step = 0;
  double start = 0;
  Vector p = {};

  [[nodiscard]] double low() const { return step * start; }
  [[nodiscard]] double high() const { return step * (start + static_cast<double>(p.size() - 1)); }
};

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

// A score e^kReach below the largest has no weight, wherever it is, so that the lattice can end there.
Crowd::Lattice Crowd::lattice(double f) const {
  constexpr double kReach = 200;
  const double top = std::max(needle_, s_.maxCoeff());
  const Vector s = s_.cwiseMax(top - kReach / f);
  Lattice out{.step = kLatticeStep / f};
  const auto place = [&](double score) { return std::lround(score / out.step); };
  const long first = place(s.minCoeff()) - kStencil / 2;
  out.start = static_cast<double>(first);
  out.p = Vector::Zero(place(s.maxCoeff()) + kStencil / 2 - first + 1);
  for (Index i = 0; i < s.size(); ++i) {
    const long middle = place(s(i));
    out.p.segment<kStencil>(middle - kStencil / 2 - first) +=
        p_(i) * stencil(s(i) / out.step - static_cast<double>(middle));
  }
  return out;
}

// Steps of u are a multiple of the lattice's, so that functions of u + s have few arguments.
Crowd::Weights Crowd::at(const Lattice& scores, double N, double f) const {
  constexpr double kStep = 0.25, kLeft = 15;
  const double c = f * needle_, delta = f * scores.step;
  const auto stride = static_cast<Index>(kStep / delta * (1 + 1e-9));
  const double step = static_cast<double>(stride) * delta;
  // On the right either the needle's y or every other one is e^4 and nothing is left. On the left all
  // y together are below 1e-6.
  const double right = 4 - std::max(c, f * scores.low());
  const double left = -std::max(c, f * scores.high() + std::log(N)) - kLeft;
  const auto steps = static_cast<Index>(std::ceil(std::max(0.0, right - left) / step));
  const Index n = scores.p.size(), before = steps * stride;
  const double origin = right + f * scores.low() - delta * static_cast<double>(before);
  // At y = e^20 its functions have vanished; larger ones would overflow.
  const Eigen::ArrayXd y =
      (origin +
       delta * Eigen::ArrayXd::LinSpaced(n + before, 0, static_cast<double>(n + before - 1)))
          .min(20.0)
          .exp();
  const Eigen::ArrayXd decay = (-y).exp();
  const Vector lost = (y < 1e-3).select(y * (1 - y / 2 * (1 - y / 3 * (1 - y / 4))), 1 - decay);
  const Vector pair = y.square() * decay;
  Weights out;
  double u = right;
  for (Index i = 0; i <= steps; ++i, u -= step) {
    const Index from = before - i * stride;
    const double own = std::exp(std::min(c + u, 20.0));
    const double psi = scores.p.dot(lost.segment(from, n));
    const double log_phi = std::log1p(-std::clamp(psi, 0.0, 1 - 1e-16));
    const double rest = std::exp((N - 2) * log_phi - own), phi = std::exp(log_phi);
    const double H = (N - 1) * scores.p.dot(pair.segment(from, n)) * rest + own * own * phi * rest;
    const double needle = own * phi * rest;
    // Beyond the last step they are e^{2u} and e^u: a geometric series.
    const bool last = i == steps;
    out.H += last ? H / (1 - std::exp(-2 * step)) : H;
    out.needle += last ? needle / (1 - std::exp(-step)) : needle;
  }
  out.H = std::min(1.0, step * out.H);
  out.needle = std::min(1.0, step * out.needle);
  return out;
}

Crowd::Weights Crowd::at(double N, double f) const { return at(lattice(f), N, f); }

std::optional<double> Crowd::factor_for(double ess, double N) const {
  constexpr double kEnd = 6 * std::numbers::ln2, kBracket = 0.25;  // of log f, up to 64
  // A lattice serves the factors from half of its own to its own.
  double octave = 0;
  Lattice scores = lattice(1);
  const auto value = [&](double x) {
    const double needed = std::ceil(x / std::numbers::ln2 - 1e-12);
    if (needed != octave) scores = lattice(std::exp2(octave = needed));
    return std::log(at(scores, N, std::exp(x)).H * ess);
  };
  // Sharper weights need a smaller factor.
  double low = 0, high = 0, a = value(0), b = a;
  while (a > 0 && low > -kEnd) {
    high = std::exchange(low, low - kBracket);
    b = std::exchange(a, value(low));
  }
  while (b < 0 && high < kEnd) {
    low = std::exchange(high, high + kBracket);
    a = std::exchange(b, value(high));
  }
  if (a > 0 || b < 0) return std::nullopt;
  // Regula falsi with halved ends (Illinois) on log H, which is nearly straight in log f.
  double middle = high;
  int side = 0;
  for (int i = 0; i < 60 && high - low > 1e-9; ++i) {
    middle = high - b * (high - low) / (b - a);
    const double v = value(middle);
    if (std::abs(v) < 1e-9) break;
    if (v < 0) {
      low = middle;
      a = v;
      if (std::exchange(side, -1) == -1) b *= 0.5;
    } else {
      high = middle;
      b = v;
      if (std::exchange(side, 1) == 1) a *= 0.5;
    }
  }
  return std::exp(middle);
}

}  // namespace esscher
