#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/base/error.h"
#include "esscher/estimate/interval.h"
#include "esscher/estimate/smallest_length.h"
#include "esscher/training/twins.h"

namespace esscher {
namespace {

// Streams of the sets of nodes: one for the flow, another for the risk where it ends.
constexpr std::uint64_t kFlowNodes = 4, kFreshNodes = 5;
constexpr double kStep = 1.0 / 16;  // between the two lengths, in log L
constexpr int kMaxMoves = 4;

// For short prompts the risk may have no minimiser: parameters go to infinity while the risk has
// settled. A solver that gives up late is therefore an answer if the gradient is small against the
// accuracy that is asked for.
FlowPoint end_of_flow(const FlowResult& flow, std::int64_t L, double eps) {
  if (flow.status == FlowStatus::failed && flow.end().gradient_norm > 1e-3 * eps) {
    throw RuntimeFailure("length_for_risk: the flow at L = " + std::to_string(L) +
                         " failed: " + flow.message);
  }
  return flow.end();
}

FlowResult flow_to_its_end(FlowSetup setup, ModelKind kind, std::int64_t L) {
  setup.flow.times = {0.0};
  return gradient_flow(setup, kind, L);
}

// The limiting risk of the flow on the k-th set of nodes, on fresh nodes.
double fresh_risk(const FlowSetup& setup, ModelKind kind, std::int64_t L, double eps, int k) {
  FlowSetup own = setup;
  const auto child = static_cast<std::uint64_t>(k);
  own.risk.stream = setup.risk.stream.split(kFlowNodes).split(child);
  const FlowPoint end = end_of_flow(flow_to_its_end(own, kind, L), L, eps);
  own.risk.stream = setup.risk.stream.split(kFreshNodes).split(child);
  return risk(setup.task, setup.space.readout(end.theta), kind, L, own.risk).value;
}

SmallestLength search(const std::function<double(std::int64_t)>& f, double target,
                      std::int64_t max_length, std::int64_t resolution) {
  // The search does not start at L = 1, because the shortest prompts have the slowest flows.
  return smallest_length(f, target,
                         {.from = 1,
                          .to = max_length,
                          .first = std::min<std::int64_t>(64, max_length),
                          .growth = 2,
                          .narrowing = Narrowing::halves,
                          .resolution = resolution});
}

std::int64_t whole(double length) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(length));
}

// The risks of all sets [K] at two neighbouring lengths, linear in log L between and around them.
struct Line {
  Line(const TwinSetup& setup, ModelKind kind, std::int64_t L, double eps)
      : at(L),
        next(std::max(L + 1, whole(static_cast<double>(L) * (1 + kStep)))),
        risks(setup.risk.scramblings),
        beyond(setup.risk.scramblings) {
    for (int k = 0; k < setup.risk.scramblings; ++k) {
      risks(k) = fresh_risk(setup, kind, at, eps, k);
      beyond(k) = fresh_risk(setup, kind, next, eps, k);
    }
    log_at = std::log(static_cast<double>(at));
    slope = (beyond.mean() - risks.mean()) / (std::log(static_cast<double>(next)) - log_at);
  }
  // log L at which each set reaches the risk [K].
  [[nodiscard]] Vector log_lengths(double risk) const {
    return log_at + (risk - risks.array()) / slope;
  }
  [[nodiscard]] double risk(double L) const {
    return risks.mean() + slope * (std::log(L) - log_at);
  }

  std::int64_t at, next;
  Vector risks, beyond;
  double log_at = 0, slope = 0;
};

LengthForRisk by_sets(const TwinSetup& setup, ModelKind kind, double target, double eps,
                      std::int64_t max_length) {
  LengthForRisk out{.eps = eps};
  const SmallestLength rough = search(
      [&](std::int64_t L) { return fresh_risk(setup, kind, L, eps, 0); }, target, max_length, 20);
  if (!rough.length) {
    out.risk_before = rough.value;
    return out;
  }
  std::int64_t L = *rough.length;
  for (int move = 1;; ++move) {
    const Line line(setup, kind, L, eps);
    if (!(line.slope < 0)) {
      throw RuntimeFailure("length_for_risk: the limiting risk does not fall at L = " +
                           std::to_string(L));
    }
    const Vector logs = line.log_lengths(target);
    const double found = std::exp(logs.mean());
    const bool is_near = std::abs(logs.mean() - line.log_at) <= 2 * kStep || whole(found) == L;
    if (!is_near && move < kMaxMoves) {
      L = std::min(whole(found), max_length);
      continue;
    }
    const auto n = static_cast<double>(logs.size());
    const double spread = std::sqrt((logs.array() - logs.mean()).square().sum() / (n - 1) / n);
    const Interval ci = student_interval(logs.mean(), spread, n - 1);
    out.length = whole(std::ceil(found));
    out.low = std::min(out.length, whole(std::ceil(std::exp(ci.lo))));
    out.high = std::max(out.length, whole(std::ceil(std::exp(ci.hi))));
    out.risk = line.risk(static_cast<double>(out.length));
    out.risk_before = out.length > 1 ? line.risk(static_cast<double>(out.length - 1))
                                     : std::numeric_limits<double>::quiet_NaN();
    return out;
  }
}

}  // namespace

LengthForRisk length_for_risk(const std::function<FlowResult(std::int64_t L)>& flow, double target,
                              double eps, std::int64_t max_length) {
  if (!(eps > 0)) throw_argument("length_for_risk", "eps", to_text(eps), "a number > 0");
  const SmallestLength found =
      search([&](std::int64_t L) { return end_of_flow(flow(L), L, eps).risk; }, target + eps,
             max_length, 0);
  LengthForRisk out{.eps = eps};
  if (!found.length) {
    out.risk_before = found.value;
    return out;
  }
  out.length = *found.length;
  out.risk = found.value;
  out.risk_before = found.before;
  return out;
}

LengthForRisk length_for_risk(const TwinSetup& setup, ModelKind kind, double target, double eps,
                              std::int64_t max_length) {
  if (!(eps > 0)) throw_argument("length_for_risk", "eps", to_text(eps), "a number > 0");
  const RiskMethod method =
      choose_risk(setup.task, 1, kind, Length(max_length), setup.risk.engine).method;
  if (method == RiskMethod::quadrature) return by_sets(setup, kind, target + eps, eps, max_length);
  LengthForRisk out = length_for_risk(
      [&](std::int64_t L) { return flow_to_its_end(setup, kind, L); }, target, eps, max_length);
  if (method == RiskMethod::closed_form && out.length != 0) out.low = out.high = out.length;
  return out;
}

}  // namespace esscher
