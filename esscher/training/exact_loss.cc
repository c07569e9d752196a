#include "esscher/training/exact_loss.h"

namespace esscher {

ExactLoss exact_loss(const TrainConfig& config, const RiskOptions& options) {
  const bool needed = config.gradient == GradientEngine::exact &&
                      config.model == ModelKind::softmax && !config.length.is_infinite() &&
                      config.heads == 1;
  if (!needed) return {};
  const RiskFunction risk = risk_function(config.task, config.model, config.length, options);
  const double scale = config.half_loss ? 1 : 2;  // a risk is half a squared error
  return [risk, scale](std::span<const Readout> heads, std::vector<Readout>& gradient) {
    gradient.resize(1);
    const double value = risk(heads[0], gradient.data());
    gradient[0].U *= scale;
    gradient[0].r *= scale;
    return scale * value;
  };
}

}  // namespace esscher
