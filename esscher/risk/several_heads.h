// The risk of several heads as one differentiable function, for optimisers:
//
//   R_L(U_1, r_1, .., U_H, r_H) = E (sum_h r_h' zbar_h - y)^2 / 2,
//
// averaged over options.draws prompts, rounded up to whole batches of 32, that are the same at every
// call. Each call is the mean over batches of batch.h and its exact gradient, so a descent along it
// meets no noise; the function differs from the risk by the error of its draws.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "esscher/risk/risk.h"

namespace esscher {

// The gradient [H] is overwritten when asked for.
using HeadsRiskFunction =
    std::function<double(std::span<const Readout> heads, std::vector<Readout>* gradient)>;

// Throws CapabilityError for an engine that several heads do not have.
HeadsRiskFunction heads_risk_function(const AnyTask& task, ModelKind kind, Length length,
                                      const RiskOptions& options);

}  // namespace esscher
