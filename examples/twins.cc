// Training twins: the same head trained by gradient flow at prompt length L and at length infinity.
// As L grows, the first ends where the second does.
#include <esscher/risk/closed_form.h>
#include <esscher/training/flow.h>
#include <esscher/training/start.h>

#include <cstdio>

int main() {
  using namespace esscher;
  const LinearRegressionTask task = LinearRegressionTask::with_covariance(power_covariance(3, 0.5));
  const Parametrisation space{ParameterSpace::block, task.token_dim()};
  const Readout start = balanced_start(3, 0.5 * balanced_start_bound(task));

  std::printf("trained at  R_L at its end  R_inf at its end\n");
  for (const Length L : {Length(10), Length(100), Length(1000), Length::infinity()}) {
    const RiskFunction risk = [&](const Readout& at, Readout* gradient) {
      return linear_risk(task, at, L, gradient);
    };
    const FlowResult flow = gradient_flow(risk, space, parameters_of(space, start), {});
    const Readout end = space.readout(flow.end().theta);
    std::printf("%-10s  %14.6f  %16.6f\n", L.text().c_str(), flow.end().risk,
                limit_risk(task, end));
  }
}
