#include "cli/flow_estimate.h"

#include <fmt/format.h>

#include <functional>

#include "esscher/risk/risk.h"

namespace esscher::cli {
namespace {

constexpr int kProbe = 3;

// CPU seconds of one gradient, after one that makes tables.
double seconds_of(const std::function<void()>& gradient) {
  gradient();
  return cpu_seconds([&] {
           for (int i = 0; i < kProbe; ++i) gradient();
         }) /
         kProbe;
}

// At the head of the start.
double gradient_seconds(const FlowSetup& setup, const FlowsToCome& flow,
                        std::span<const Readout> near) {
  const RiskMethod method =
      choose_risk(setup.task, 1, flow.kind, flow.length, setup.risk.engine).method;
  const RiskFunction risk =
      risk_function(setup.task, flow.kind, flow.length, setup.risk,
                    method == RiskMethod::quadrature ? near : std::span<const Readout>());
  const Readout at = setup.space.readout(setup.theta0);
  Readout gradient = at;
  return seconds_of([&] { (void)risk(at, &gradient); });
}

// The same at the layer of the start.
double gradient_seconds(const LayerFlowProblem& problem) {
  const SmoothFunction risk = layer_field(problem).risk;
  const Vector theta = problem.model.theta0();
  Vector gradient;
  return seconds_of([&] { (void)risk(theta, gradient); });
}

FlowResult pilot_of(LayerFlowProblem problem) {
  problem.length = Length::infinity();
  return layer_flow(problem);
}

std::string gradients_text(const FlowResult& pilot) {
  return fmt::format(
      "{} gradients per flow, as many as at L = inf, each as long as one at the start",
      pilot.evaluations);
}

}  // namespace

DryRun flow_estimate(const std::string& verb, const std::string& what, std::int64_t cells,
                     const FlowSetup& setup, const std::vector<FlowsToCome>& flows) {
  DryRun out{.verb = verb,
             .what = what,
             .engine = "the exact risk: closed forms, and quadrature at finite length",
             .count = cells};
  const RiskChoice limit =
      choose_risk(setup.task, 1, ModelKind::linear, Length::infinity(), setup.risk.engine);
  if (limit.method != RiskMethod::closed_form) {
    out.engine = limit.reason;
    out.basis = "the integrator chooses its steps on the way, and no closed form counts them";
    return out;
  }
  const FlowResult pilot = gradient_flow(setup, ModelKind::linear, Length::infinity());
  const std::vector<Readout> near = readouts(setup.space, pilot);
  double seconds = 0;
  for (const FlowsToCome& flow : flows) {
    const std::int64_t gradients = flow.count * (pilot.evaluations + flow.besides);
    seconds += static_cast<double>(gradients) * gradient_seconds(setup, flow, near);
  }
  out.cpu_seconds = seconds;
  out.basis = gradients_text(pilot);
  return out;
}

DryRun flow_estimate(const LayerFlowProblem& problem) {
  const FlowResult pilot = pilot_of(problem);
  return {.verb = "icl flow",
          .what = "a gradient flow at L = " + problem.length.text(),
          .engine = choose_layer_risk(problem.model.task, problem.model.start, problem.length,
                                      problem.risk.engine)
                        .reason,
          .count = 1,
          .cpu_seconds = static_cast<double>(pilot.evaluations) * gradient_seconds(problem),
          .basis = gradients_text(pilot)};
}

DryRun flow_estimate(const LayerCompareProblem& problem) {
  LayerFlowProblem flow = problem.flow;
  const FlowResult pilot = pilot_of(flow);
  double seconds = 0, last = 0;
  const std::int64_t searches = kFlowsPerSearch * static_cast<std::int64_t>(problem.eps.size());
  for (const Length L : problem.lengths) {
    flow.length = L;
    last = gradient_seconds(flow);
    const std::int64_t gaps = problem.points * flow.risk.scramblings;
    seconds += static_cast<double>(pilot.evaluations + gaps) * last;
  }
  seconds += static_cast<double>(searches * pilot.evaluations) * last;
  return {
      .verb = "icl compare",
      .what = "flows at several lengths and at infinity",
      .engine = choose_layer_risk(flow.model.task, flow.model.start, flow.length, flow.risk.engine)
                    .reason,
      .count = 1 + static_cast<std::int64_t>(problem.lengths.size() + problem.eps.size()),
      .cpu_seconds = seconds,
      .basis = gradients_text(pilot)};
}

}  // namespace esscher::cli
