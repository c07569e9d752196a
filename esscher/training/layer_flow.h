// Gradient flow of the risk of a layer on a task beyond regression, as the rows of any flow
// (flow_rows.h): exact over prompts for one softmax head or linear heads, at any length, and for any
// layer at L = infinity; other layers flow on fixed prompts.
#pragma once

#include "esscher/training/flow_rows.h"
#include "esscher/training/layer_model.h"

namespace esscher {

struct LayerFlowProblem {
  LayerModel model;
  Length length = Length::infinity();
  FlowOptions flow = {};
  RiskOptions risk = {};
};

// The risk in theta, which keeps LayerMap::conserved.
FlowField layer_field(const LayerFlowProblem& problem);

FlowResult layer_flow(const LayerFlowProblem& problem);

// The one cell "flow".
Cells<FlowRow> flow_cells(const LayerFlowProblem& problem);

}  // namespace esscher
