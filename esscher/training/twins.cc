#include "esscher/training/twins.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/estimate/smallest_length.h"

namespace esscher {
namespace {

Vector gradient_at(const RiskFunction& risk, const Parametrisation& space,
                   const VectorView& theta) {
  Readout slope;
  risk(space.readout(theta), &slope);
  return space.pull_back(theta, slope);
}

// The recorded point at time t, or the end of a flow that stopped before.
const FlowPoint& at_time(const FlowResult& flow, double t) {
  const auto after = std::lower_bound(flow.path.begin(), flow.path.end(), t,
                                      [](const FlowPoint& p, double time) { return p.t < time; });
  return after == flow.path.end() ? flow.end() : *after;
}

// For short prompts the risk may have no minimiser: parameters go to infinity while the risk has
// settled. A solver that gives up late is therefore an answer if the gradient is small against the
// accuracy that is asked for.
double final_risk(const TwinSetup& setup, ModelKind kind, std::int64_t L, double eps) {
  FlowSetup ends = setup;
  ends.flow.times = {0.0};
  const FlowResult flow = gradient_flow(ends, kind, L);
  if (flow.status == FlowStatus::failed && flow.end().gradient_norm > 1e-3 * eps) {
    throw RuntimeFailure("length_for_risk: the flow at L = " + std::to_string(L) +
                         " failed: " + flow.message);
  }
  return flow.end().risk;
}

}  // namespace

FlowResult reference_flow(const TwinSetup& setup) {
  if (setup.points < 2) {
    throw_argument("reference_flow", "points", std::to_string(setup.points), "an integer >= 2");
  }
  const RiskFunction limit =
      risk_function(setup.task, ModelKind::softmax, Length::infinity(), setup.risk);
  FlowOptions options = setup.flow;
  options.times = {0.0};
  const double t_end = gradient_flow(limit, setup.space, setup.theta0, options).end().t;
  for (int i = 0; i < setup.points; ++i) {
    options.times.push_back(t_end * std::pow(10.0, -3.0 + 3.0 * i / (setup.points - 1)));
  }
  return gradient_flow(limit, setup.space, setup.theta0, options);
}

Twin twin_flow(const TwinSetup& setup, const FlowResult& reference, ModelKind kind, Length length) {
  std::vector<double> times;
  for (const FlowPoint& point : reference.path) times.push_back(point.t);
  const RiskFunction at_length = risk_function(setup.task, kind, length, setup.risk);
  const RiskFunction limit =
      risk_function(setup.task, ModelKind::softmax, Length::infinity(), setup.risk);
  FlowOptions options = setup.flow;
  options.times = std::move(times);
  const FlowResult flow = gradient_flow(at_length, setup.space, setup.theta0, options);
  Twin twin;
  twin.kind = kind;
  twin.length = length;
  twin.status = flow.status;
  twin.t_end = flow.end().t;
  twin.end = setup.space.readout(flow.end().theta);
  twin.limiting_risk = risk(setup.task, twin.end, kind, length, setup.risk);
  bool together = true;
  for (const FlowPoint& there : reference.path) {
    const FlowPoint& here = at_time(flow, there.t);
    TwinPoint p{there.t, here.risk, there.risk, (here.theta - there.theta).norm(), 0};
    p.gradient_gap = (gradient_at(at_length, setup.space, there.theta) -
                      gradient_at(limit, setup.space, there.theta))
                         .norm();
    together = together && p.distance <= setup.horizon_distance * there.theta.norm();
    if (together) twin.horizon = there.t;
    twin.sup_distance = std::max(twin.sup_distance, p.distance);
    twin.sup_gradient_gap = std::max(twin.sup_gradient_gap, p.gradient_gap);
    twin.sup_risk_gap = std::max(twin.sup_risk_gap, std::abs(p.risk - p.reference_risk));
    twin.path.push_back(p);
  }
  return twin;
}

LengthForRisk length_for_risk(const TwinSetup& setup, ModelKind kind, double target, double eps,
                              std::int64_t max_length) {
  if (!(eps > 0)) throw_argument("length_for_risk", "eps", to_text(eps), "a number > 0");
  // The search does not start at L = 1, because the shortest prompts have the slowest flows.
  const SmallestLength found =
      smallest_length([&](std::int64_t L) { return final_risk(setup, kind, L, eps); }, target + eps,
                      {.from = 1,
                       .to = max_length,
                       .first = std::min<std::int64_t>(64, max_length),
                       .growth = 2,
                       .narrowing = Narrowing::halves});
  LengthForRisk out;
  out.eps = eps;
  if (!found.length) {
    out.risk_before = found.value;
    return out;
  }
  out.length = *found.length;
  out.risk = found.value;
  out.risk_before = found.before;
  return out;
}

}  // namespace esscher
