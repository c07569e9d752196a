// A layer that learns a task beyond regression: where it starts, and the coordinates theta in which
// it moves, the free numbers of a family or factors of its matrices (layer_map.h).
#pragma once

#include <vector>

#include "esscher/risk/layer_risk.h"
#include "esscher/training/layer_map.h"
#include "esscher/training/minimise.h"

namespace esscher {

struct LayerModel {
  ContextTask task;
  Layer start = {};
  LayerFamily family = LayerFamily::full;
  LayerFactors factors = {};
  Vector theta = {};  // factors that give the start, where it is not their balanced factorisation

  // Throws ArgumentError for factors of another family than the full one.
  [[nodiscard]] LayerMap map() const;
  [[nodiscard]] Vector theta0() const;
};

// Heads that start balanced, |U_h|_F = |V_h|_F = alpha, without a residual. Tasks with labels start
// as regression does (start.h); others have U_h = V_h = alpha S_h. The shape [q,q] of S is that of
// one head, with q = D - 1 for labels and q = D else; several heads draw theirs.
Layer balanced_layer(const ContextTask& task, const std::vector<ModelKind>& kinds, double alpha,
                     const MatrixView& shape, const Stream& stream);

// The model with PyTorch's start (LayerMap::torch_start).
LayerModel with_torch_start(LayerModel model, const Stream& stream);

// The risk of layer_risk_function as a function of theta. Where the layer has no risk, because
// scores are beyond reach or the limit does not exist, it is infinite and its gradient not a
// number, so that descents and integrators turn back. Throws CapabilityError if options.engine asks
// for a gradient that has no formula.
SmoothFunction layer_objective(const ContextTask& task, const LayerMap& map, Length length,
                               const RiskOptions& options);

}  // namespace esscher
