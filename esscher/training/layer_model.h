// A layer that learns a task beyond regression: where it starts, and the family in which it moves.
// Flows and training move phi, the free numbers of the family (layer_family.h).
#pragma once

#include <vector>

#include "esscher/risk/layer_risk.h"
#include "esscher/training/layer_family.h"
#include "esscher/training/minimise.h"

namespace esscher {

struct LayerModel {
  ContextTask task;
  Layer start = {};
  LayerFamily family = LayerFamily::full;

  [[nodiscard]] FamilyMap map() const;
  [[nodiscard]] Vector phi0() const { return map().coordinates(start); }
};

// The risk of layer_risk_function as a function of phi. Where the layer has no risk, because scores
// are beyond reach or the limit does not exist, it is infinite and its gradient not a number, so that
// descents and integrators turn back. Throws CapabilityError if options.engine asks for a gradient
// that has no formula.
SmoothFunction layer_objective(const ContextTask& task, const FamilyMap& map, Length length,
                               const RiskOptions& options);

}  // namespace esscher
