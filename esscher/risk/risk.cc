#include "esscher/risk/risk.h"

#include "esscher/risk/closed_form.h"

namespace esscher {
namespace {

bool is_simulated(const LinearRegressionTask& task, const RiskOptions& options) {
  return task.features != Features::gaussian || options.engine == Engine::direct ||
         options.engine == Engine::sampled;
}

}  // namespace

RiskFunction risk_function(const Task& task, ModelKind kind, Length length,
                           const RiskOptions& options) {
  return SampleRisk(task, kind, length, options.draws, options.stream, options.engine);
}

Estimate model_risk(const Task& task, const Readout& at, ModelKind kind, Length length,
                    const RiskOptions& options) {
  return simulated_risk(task, at, kind, length, options.draws, options.stream.split(1),
                        options.engine);
}

RiskFunction risk_function(const LinearRegressionTask& task, ModelKind kind, Length length,
                           const RiskOptions& options) {
  task.check();
  if (is_simulated(task, options)) {
    return risk_function(regression_task(task), kind, length, options);
  }
  if (length.is_infinite() || kind == ModelKind::linear) {
    return
        [task, length](const Readout& at, Readout* g) { return linear_risk(task, at, length, g); };
  }
  const auto risk = std::make_shared<const SoftmaxRisk>(
      task, length.count(), regression_nodes(task, options.log2_nodes, options.stream));
  return [risk](const Readout& at, Readout* g) { return (*risk)(at, g); };
}

Estimate model_risk(const LinearRegressionTask& task, const Readout& at, ModelKind kind,
                    Length length, const RiskOptions& options) {
  task.check();
  if (is_simulated(task, options)) {
    return model_risk(regression_task(task), at, kind, length, options);
  }
  if (length.is_infinite() || kind == ModelKind::linear) {
    return {linear_risk(task, at, length), 0, 0, Engine::exact};
  }
  return softmax_risk(task, at, length, {options.log2_nodes, options.scramblings},
                      options.stream.split(1));
}

}  // namespace esscher
