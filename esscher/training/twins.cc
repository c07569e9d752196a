#include "esscher/training/twins.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// The recorded point at time t, or the end of a flow that stopped before.
const FlowPoint& at_time(const FlowResult& flow, double t) {
  const auto after = std::lower_bound(flow.path.begin(), flow.path.end(), t,
                                      [](const FlowPoint& p, double time) { return p.t < time; });
  return after == flow.path.end() ? flow.end() : *after;
}

}  // namespace

FlowResult reference_flow(const FlowField& limit, const VectorView& theta0, FlowOptions options,
                          int points) {
  if (points < 2) {
    throw_argument("reference_flow", "points", std::to_string(points), "an integer >= 2");
  }
  options.times = {0.0};
  const double t_end = gradient_flow(limit, theta0, options).end().t;
  for (int i = 0; i < points; ++i) {
    options.times.push_back(t_end * std::pow(10.0, -3.0 + 3.0 * i / (points - 1)));
  }
  return gradient_flow(limit, theta0, options);
}

FlowResult reference_flow(const TwinSetup& setup) {
  const RiskFunction limit =
      risk_function(setup.task, ModelKind::softmax, Length::infinity(), setup.risk);
  return reference_flow(flow_field(limit, setup.space), setup.theta0, setup.flow, setup.points);
}

TwinTrack twin_track(const FlowField& field, FlowOptions options, const FlowResult& reference,
                     const std::function<Estimate(const VectorView& theta)>& gap,
                     double horizon_distance) {
  options.times.clear();
  for (const FlowPoint& point : reference.path) options.times.push_back(point.t);
  const FlowResult flow = gradient_flow(field, reference.path.front().theta, options);
  TwinTrack twin;
  twin.status = flow.status;
  twin.t_end = flow.end().t;
  twin.theta = flow.end().theta;
  bool together = true;
  for (const FlowPoint& there : reference.path) {
    const FlowPoint& here = at_time(flow, there.t);
    const TwinPoint p{.t = there.t,
                      .risk = here.risk,
                      .reference_risk = there.risk,
                      .distance = (here.theta - there.theta).norm(),
                      .gradient_gap = gap(there.theta)};
    together = together && p.distance <= horizon_distance * there.theta.norm();
    if (together) twin.horizon = there.t;
    twin.sup_distance = std::max(twin.sup_distance, p.distance);
    if (twin.path.empty() || p.gradient_gap.value > twin.sup_gradient_gap.value) {
      twin.sup_gradient_gap = p.gradient_gap;
    }
    twin.sup_risk_gap = std::max(twin.sup_risk_gap, std::abs(p.risk - p.reference_risk));
    twin.path.push_back(p);
  }
  return twin;
}

Twin twin_flow(const TwinSetup& setup, const FlowResult& reference, ModelKind kind, Length length) {
  const RiskFunction at_length =
      risk_function(setup.task, kind, length, setup.risk, readouts(setup.space, reference));
  Twin twin;
  static_cast<TwinTrack&>(twin) =
      twin_track(flow_field(at_length, setup.space), setup.flow, reference,
                 GradientGap(setup, kind, length), setup.horizon_distance);
  twin.kind = kind;
  twin.length = length;
  twin.end = setup.space.readout(twin.theta);
  twin.limiting_risk = risk(setup.task, twin.end, kind, length, setup.risk);
  return twin;
}

}  // namespace esscher
