#include "esscher/measure/detail/score_student.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "esscher/base/error.h"

namespace esscher::detail {
namespace {

// Tails begin at kTailScore, or where the density stops to fall by more than e^-1/4 over a score of 1.
// Sums of eight nodes are then right to 1e-12 (measured for nu from 2.2 to 40 and tau from 0.1 to 6).
constexpr double kTailScore = 80;
constexpr double kTailSlope = 0.25;
// They begin earlier where the density is below this: 10^15 tokens then have none there.
constexpr double kRare = 1e-30;
// Nodes are read from x up to these distances: y = e^{s - x} is rounding below, e^-y is above.
constexpr double kBelow = 46, kAbove = 8;
constexpr double kMaxScore = 5000;

// Positive t up to T; the density varies on the scale 1 + t, g(s) on the scale 1/tau.
PanelRule near_rule(double T, double tau) {
  std::vector<PanelRule> panels;
  Index n = 0;
  for (double t = 0; t < T;) {
    const double width = std::min(kScorePanel / tau, 1 + t / 4);
    const double next = t + 1.5 * width > T ? T : t + width;
    panels.push_back(panel_rule(t, next, next - t));
    n += panels.back().x.size();
    t = next;
  }
  PanelRule rule{Vector(n), Vector(n)};
  Index at = 0;
  for (const PanelRule& panel : panels) {
    rule.x.segment(at, panel.x.size()) = panel.x;
    rule.w.segment(at, panel.x.size()) = panel.w;
    at += panel.x.size();
  }
  return rule;
}

// From where on the tails serve, as a distance X from the middle. -f'/f is (nu + 1) X/(nu tau^2 + X^2).
double tail_begin(const LongTail& tail, double tau) {
  const double half = 0.5 * (tail.nu() + 1) / kTailSlope,
               bend = half * half - tail.nu() * tau * tau;
  const double smooth = std::max(kTailScore, bend > 0 ? half + std::sqrt(bend) : 0);
  double X = 0.25 * kTailScore;
  while (X < smooth && tail.density(tail.middle() + X) > kRare) X *= 1.1;
  return std::min(X, smooth);
}

void check_reach(double X) {
  if (X <= kMaxScore) return;
  throw CapabilityError("exact: scores beside those of student tokens reach " + to_text(X) +
                        " here, their nodes reach " + to_text(kMaxScore) +
                        "; the direct engine can serve them");
}

}  // namespace

ScoreLaw student_nodes(const Student& mu, const ScoreReading& r) {
  const double nu = mu.nu();
  if (!(nu >= kLeastNu)) {
    throw CapabilityError("exact: student tokens of nu = " + to_text(nu) +
                          " have no score law, which needs nu >= " + to_text(kLeastNu) +
                          "; the direct engine can serve them");
  }
  const Vector Ga = mu.cov() * r.a;
  const double tau = std::sqrt(std::max(0.0, r.a.dot(Ga))), s0 = r.a.dot(mu.centre());
  const double trace = (r.V * mu.cov()).cwiseProduct(r.V).sum();
  if (tau == 0) return constant_score(s0, r.V * mu.centre(), trace * nu / (nu - 2), r.c);
  LongTail tail(nu, s0, tau);
  tail.mean = r.V * mu.centre() - r.c;
  tail.slope = r.V * Ga / tau;
  tail.across = std::max(0.0, trace - tail.slope.squaredNorm()) / (nu - 1);
  const double X = tail_begin(tail, tau);
  const double down = std::max(X, s0 - r.low), up = std::max(X, r.high - s0);
  check_reach(std::max(down, up));

  const PanelRule left = near_rule((down + kBelow) / tau, tau);
  const PanelRule right = near_rule((up + kAbove) / tau, tau);
  const Index m = left.x.size(), n = m + right.x.size();
  Vector t(n), p(n);
  t << -left.x, right.x;
  p << left.w, right.w;
  for (Index i = 0; i < n; ++i) p[i] *= tau * tail.density(s0 + tau * t[i]);
  const double lowest = s0 - down - kBelow, highest = s0 + up + kAbove;
  const double below = tail.below(lowest), above = tail.above(highest);
  p *= (1 - below - above) / p.sum();
  const Matrix mean = (t * tail.slope.transpose()).rowwise() + (r.V * mu.centre()).transpose();
  const Vector variance = tail.across * (nu + t.array().square()).matrix();
  const ScoreLaw middle = score_nodes((tau * t).array() + s0, p, mean, variance, r.c);

  const Index k = middle.size();
  ScoreLaw out{Vector(k + 2), Vector(k + 2), Matrix::Zero(k + 2, r.c.size()), Vector::Zero(k + 2)};
  out.s << lowest, middle.s, highest;
  out.p << below, middle.p, above;
  out.first.middleRows(1, k) = middle.first;
  out.second.segment(1, k) = middle.second;
  out.tails = LongTails{.low = s0 - down, .high = s0 + up, .parts = {std::move(tail)}};
  return out;
}

}  // namespace esscher::detail
