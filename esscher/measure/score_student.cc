#include "esscher/measure/detail/score_student.h"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <numbers>
#include <utility>

#include "esscher/base/error.h"

namespace esscher::detail {
namespace {

// R, the reach of the nodes, and the least number of deviations that they must cover.
constexpr double kReach = 1000;
constexpr double kLeastDeviations = 30;
// Nodes end earlier where density/R is below this: 10^15 tokens then have no two far scores.
constexpr double kRare = 1e-25;
// Second moments beyond e^-kTail of the far ones are left out.
constexpr double kTail = 40;

// Student's t with density, upper tail and moments.
class TLaw {
 public:
  explicit TLaw(double nu)
      : nu_(nu),
        log_c_(std::lgamma((nu + 1) / 2) - std::lgamma(nu / 2) -
               0.5 * std::log(nu * std::numbers::pi)) {}

  // lgamma of large arguments loses digits; the caller divides by the sum where that matters.
  [[nodiscard]] double density(double t) const {
    return std::exp(log_c_ - 0.5 * (nu_ + 1) * std::log1p(t * t / nu_));
  }
  [[nodiscard]] double above(double t) const {
    const double half = 0.5 * boost::math::ibeta(nu_ / 2, 0.5, nu_ / (nu_ + t * t));
    return t >= 0 ? half : 1 - half;
  }

 private:
  double nu_, log_c_;
};

// Positive t up to T; the density varies on the scale 1 + t, g(s) on the scale 1/tau. Rare scores have
// panels of twice the width, which leave 1e-10.
PanelRule near_rule(double T, double tau) {
  constexpr double kRareScore = 60;
  std::vector<PanelRule> panels;
  Index n = 0;
  for (double t = 0; t < T;) {
    const double panel = tau * t < kRareScore ? kScorePanel : 2 * kScorePanel;
    const double width = std::min(panel / tau, 1 + t / 4);
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

// t beyond T by panels of log t, with the density in the weights, whose sum is the tail.
PanelRule far_rule(const TLaw& law, double nu, double T) {
  PanelRule rule = panel_rule(0, kTail / (nu - 2), std::min(1.0, 10 / nu));
  for (Index i = 0; i < rule.x.size(); ++i) {
    rule.x[i] = T * std::exp(rule.x[i]);
    rule.w[i] *= rule.x[i] * law.density(rule.x[i]);
  }
  rule.w *= law.above(T) / rule.w.sum();
  return rule;
}

// How far nodes reach, in score.
double node_reach(const TLaw& law, double tau) {
  double R = kLeastDeviations * tau;
  if (!(R <= kReach)) {
    throw CapabilityError("exact: scores of student tokens reach " + to_text(R) +
                          " here, their nodes reach " + to_text(kReach) +
                          "; the direct engine can serve them");
  }
  while (R < kReach && law.density(R / tau) / tau > kRare * R) R *= 1.2;
  return std::min(R, kReach);
}

// What is read at t = (s - <a,m>)/tau: V m + t Vb and (nu + t^2)/(nu - 1) tr VRV'.
struct Reading {
  Vector middle, Vb;
  double nu, rest;

  [[nodiscard]] Matrix mean(const Vector& t) const {
    return (t * Vb.transpose()).rowwise() + middle.transpose();
  }
  [[nodiscard]] Vector variance(const Vector& t) const {
    return rest / (nu - 1) * (nu + t.array().square()).matrix();
  }
};

// The node of all t below -T, mirror images of the far ones.
ScoreLaw lowest_node(const PanelRule& far, double s, const Reading& read, const Vector& c) {
  const double mass = far.w.sum(), mean = -far.w.dot(far.x) / mass;
  const double square = far.w.dot(far.x.cwiseProduct(far.x)) / mass;
  const double variance = read.rest / (read.nu - 1) * (read.nu + square) +
                          (square - mean * mean) * read.Vb.squaredNorm();
  return constant_score(s, read.middle + mean * read.Vb, variance, c);
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
  const Vector Vb = r.V * Ga / tau;
  const Reading read{r.V * mu.centre(), Vb, nu, std::max(0.0, trace - Vb.squaredNorm())};
  const TLaw law(nu);
  const double T = node_reach(law, tau) / tau;
  const PanelRule half = near_rule(T, tau), far = far_rule(law, nu, T);
  const Index n = half.x.size();
  Vector t(2 * n), p(2 * n);
  t << -half.x, half.x;
  for (Index i = 0; i < n; ++i) p[i] = half.w[i] * law.density(half.x[i]);
  p.tail(n) = p.head(n);
  const double mass = law.above(T);
  p *= (1 - 2 * mass) / p.sum();
  const ScoreLaw middle =
      score_nodes((tau * t).array() + s0, p / p.sum(), read.mean(t), read.variance(t), r.c);
  ScoreLaw out = mixed(Vector{{1 - 2 * mass, mass}} / (1 - mass),
                       {middle, lowest_node(far, s0 - tau * T, read, r.c)});
  const ScoreLaw beyond =
      score_nodes((tau * far.x).array() + s0, far.w, read.mean(far.x), read.variance(far.x), r.c);
  out.far = FarScores{.from = s0 + tau * T,
                      .reach = tau * T,
                      .mass = mass,
                      .density = law.density(T) / tau,
                      .s = beyond.s,
                      .p = beyond.p,
                      .first = beyond.first,
                      .second = beyond.second,
                      .above = [law, s0, tau](double x) { return law.above((x - s0) / tau); }};
  return out;
}

}  // namespace esscher::detail
