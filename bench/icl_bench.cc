// Exact softmax risks and their flow (d = 5, 2^12 nodes): the cost of a gradient must not depend on
// L, and a flow at L = 1000 to stationarity must take less than 30 s on two cores. Each answer is
// checked before it is timed.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>

#include "esscher/base/parallel.h"
#include "esscher/risk/risk.h"
#include "esscher/training/flow.h"
#include "esscher/training/start.h"

namespace {

using namespace esscher;

LinearRegressionTask paper_task() {
  return LinearRegressionTask::with_covariance(power_covariance(5, 0.5));
}

void ExactGradient(benchmark::State& state) {
  const LinearRegressionTask task = paper_task();
  RiskOptions options;
  const RiskFunction risk = risk_function(task, ModelKind::softmax, state.range(0), options);
  Readout at = balanced_start(5, 0.5), gradient;
  at.r(0) = 0.1;
  const double value = risk(at, &gradient), h = 1e-5, slope = gradient.U(1, 2);
  at.U(1, 2) += h;
  const double up = risk(at, nullptr);
  at.U(1, 2) -= h;
  if (std::abs((up - value) / h - slope) > 1e-3 * (1 + std::abs(slope))) {
    state.SkipWithError("the gradient is not the difference");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(risk(at, &gradient));
}
BENCHMARK(ExactGradient)
    ->RangeMultiplier(1000)
    ->Range(10, 10000000000)
    ->Unit(benchmark::kMicrosecond);

// R_L and its gradient over 2^20 nodes at L = 10^9.
void MillionNodes(benchmark::State& state) {
  set_thread_count(static_cast<int>(state.range(0)));
  const LinearRegressionTask task = paper_task();
  RiskOptions options;
  options.log2_nodes = 20;
  const RiskFunction risk = risk_function(task, ModelKind::softmax, 1'000'000'000, options);
  Readout at = balanced_start(5, 0.5), gradient;
  at.r(0) = 0.1;
  at.U(5, 0) = 0.1;  // scores read labels, so tasks are not averaged over by hand
  for (auto _ : state) benchmark::DoNotOptimize(risk(at, &gradient));
  set_thread_count(0);
}
BENCHMARK(MillionNodes)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

void FlowToStationarity(benchmark::State& state) {
  const LinearRegressionTask task = paper_task();
  RiskOptions options;
  const RiskFunction risk = risk_function(task, ModelKind::softmax, 1000, options);
  const Parametrisation space{ParameterSpace::UV, 6};
  const Vector theta0 = parameters_of(space, balanced_start(5, 0.25));
  for (auto _ : state) {
    const FlowResult flow = gradient_flow(risk, space, theta0, FlowOptions());
    if (flow.status != FlowStatus::stationary) state.SkipWithError("not stationary");
    state.counters["gradients"] = static_cast<double>(flow.evaluations);
  }
}
BENCHMARK(FlowToStationarity)->Unit(benchmark::kSecond)->Iterations(1)->UseRealTime();

}  // namespace
