#include "cli/flow_estimate.h"

#include <fmt/format.h>

#include "esscher/risk/risk.h"

namespace esscher::cli {
namespace {

// CPU seconds of one gradient at the head of the start, after one that makes tables.
double gradient_seconds(const FlowSetup& setup, const FlowsToCome& flow,
                        std::span<const Readout> near) {
  const RiskMethod method =
      choose_risk(setup.task, 1, flow.kind, flow.length, setup.risk.engine).method;
  const RiskFunction risk =
      risk_function(setup.task, flow.kind, flow.length, setup.risk,
                    method == RiskMethod::quadrature ? near : std::span<const Readout>());
  const Readout at = setup.space.readout(setup.theta0);
  Readout gradient = at;
  (void)risk(at, &gradient);
  constexpr int kProbe = 3;
  return cpu_seconds([&] {
           for (int i = 0; i < kProbe; ++i) (void)risk(at, &gradient);
         }) /
         kProbe;
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
  out.basis =
      fmt::format("{} gradients per flow, as many as at L = inf, each as long as one at the start",
                  pilot.evaluations);
  return out;
}

}  // namespace esscher::cli
