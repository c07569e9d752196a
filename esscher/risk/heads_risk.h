// Risk of a model of several heads, whose predictions add: prediction = sum_h r_h' zbar_h. One head
// has the formulas of model_risk.h; several are simulated on options.draws fresh prompts, without
// drawing tokens where features are Gaussian (train_batch.h), with a standard error over batches.
#pragma once

#include <span>

#include "esscher/risk/risk.h"

namespace esscher {

Estimate heads_risk(const LinearRegressionTask& task, std::span<const Readout> heads,
                    ModelKind kind, Length length, const RiskOptions& options);
Estimate heads_risk(const Task& task, std::span<const Readout> heads, ModelKind kind, Length length,
                    const RiskOptions& options);

}  // namespace esscher
