// The population loss that gradient = exact follows where it has no closed form: one softmax head
// at finite length, Gaussian features, by the fixed nodes of softmax_risk.h.
#pragma once

#include "esscher/risk/risk.h"
#include "esscher/training/trainer.h"

namespace esscher {

// Empty where Trainer needs none.
ExactLoss exact_loss(const TrainConfig& config, const RiskOptions& options);

}  // namespace esscher
