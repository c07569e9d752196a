#include "esscher/training/twins.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"

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

FlowResult flow_to_end(const TwinSetup& setup, ModelKind kind, Length length,
                       std::vector<double> times) {
  FlowOptions options = setup.flow;
  options.times = std::move(times);
  const RiskFunction risk = risk_function(setup, kind, length);
  return gradient_flow(risk, setup.space, setup.theta0, options);
}

// Short prompts can have no minimiser (parameters run away while the risk has settled), so a solver
// that gives up late is an answer if the gradient is small against the accuracy that is asked for.
double final_risk(const TwinSetup& setup, ModelKind kind, std::int64_t L, double eps) {
  const FlowResult flow = flow_to_end(setup, kind, L, {0.0});
  if (flow.status == FlowStatus::failed && flow.end().gradient_norm > 1e-3 * eps) {
    throw RuntimeFailure("length_for_risk: the flow at L = " + std::to_string(L) +
                         " failed: " + flow.message);
  }
  return flow.end().risk;
}

}  // namespace

RiskFunction risk_function(const TwinSetup& setup, ModelKind kind, Length length) {
  if (setup.own_task) return risk_function(*setup.own_task, kind, length, setup.risk);
  return risk_function(setup.task, kind, length, setup.risk);
}

FlowResult reference_flow(const TwinSetup& setup) {
  if (setup.points < 2) {
    throw_argument("reference_flow", "points", std::to_string(setup.points), "an integer >= 2");
  }
  const double t_end = flow_to_end(setup, ModelKind::softmax, Length::infinity(), {0.0}).end().t;
  std::vector<double> times{0.0};
  for (int i = 0; i < setup.points; ++i) {
    times.push_back(t_end * std::pow(10.0, -3.0 + 3.0 * i / (setup.points - 1)));
  }
  return flow_to_end(setup, ModelKind::softmax, Length::infinity(), times);
}

Twin twin_flow(const TwinSetup& setup, const FlowResult& reference, ModelKind kind, Length length) {
  std::vector<double> times;
  for (const FlowPoint& point : reference.path) times.push_back(point.t);
  const FlowResult flow = flow_to_end(setup, kind, length, times);
  const RiskFunction risk = risk_function(setup, kind, length);
  const RiskFunction limit = risk_function(setup, ModelKind::softmax, Length::infinity());
  Twin twin;
  twin.kind = kind;
  twin.length = length;
  twin.status = flow.status;
  twin.t_end = flow.end().t;
  twin.end = setup.space.readout(flow.end().theta);
  twin.limiting_risk = setup.own_task
                           ? model_risk(*setup.own_task, twin.end, kind, length, setup.risk)
                           : model_risk(setup.task, twin.end, kind, length, setup.risk);
  bool together = true;
  for (const FlowPoint& there : reference.path) {
    const FlowPoint& here = at_time(flow, there.t);
    TwinPoint p{there.t, here.risk, there.risk, (here.theta - there.theta).norm(), 0};
    p.gradient_gap =
        (gradient_at(risk, setup.space, there.theta) - gradient_at(limit, setup.space, there.theta))
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
  LengthForRisk out;
  out.eps = eps;
  // Not from L = 1: the shortest prompts have the slowest flows.
  const auto enough = [&](double risk) { return risk <= target + eps; };
  std::int64_t low = 0, high = std::min<std::int64_t>(64, max_length);
  double at_low = std::numeric_limits<double>::quiet_NaN();
  double at_high = final_risk(setup, kind, high, eps);
  while (!enough(at_high)) {
    if (high >= max_length) {
      out.risk_before = at_high;
      return out;
    }
    low = high;
    at_low = at_high;
    high = std::min(2 * high, max_length);
    at_high = final_risk(setup, kind, high, eps);
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    const double risk = final_risk(setup, kind, middle, eps);
    (enough(risk) ? high : low) = middle;
    (enough(risk) ? at_high : at_low) = risk;
  }
  out.length = high;
  out.risk = at_high;
  out.risk_before = at_low;
  return out;
}

}  // namespace esscher
