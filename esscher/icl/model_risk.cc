#include "esscher/icl/model_risk.h"

#include "esscher/icl/risk.h"

namespace esscher {

RiskFunction risk_function(const LinearRegressionTask& task, ModelKind kind, Length length,
                           const RiskOptions& options) {
  task.check();
  if (task.features != Features::gaussian) {
    return SampleRisk(regression_task(task), kind, length, options.draws, options.stream);
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
  if (task.features != Features::gaussian) {
    return simulated_risk(regression_task(task), at, kind, length, options.draws, options.stream);
  }
  if (length.is_infinite() || kind == ModelKind::linear) {
    return {linear_risk(task, at, length), 0, 0, Engine::exact};
  }
  return softmax_risk(task, at, length, {options.log2_nodes, options.scramblings},
                      options.stream.split(1));
}

}  // namespace esscher
