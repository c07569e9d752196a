// Twin trajectories of a layer on a task beyond regression: its flow in an infinite prompt and its flows
// at finite lengths, from one start and on the same nodes or draws, as the rows of any comparison
// (twin_rows.h). The model of the rows is the kinds of the heads.
#pragma once

#include <vector>

#include "esscher/training/layer_flow.h"
#include "esscher/training/twin_rows.h"

namespace esscher {

struct LayerCompareProblem {
  LayerFlowProblem flow;  // at L = infinity; its length plays no part
  std::vector<Length> lengths;
  std::vector<double> eps = {};
  double horizon_distance = 0.1;  // relative to |theta_inf(t)|
  int points = 100;               // recorded times, geometric from 1e-3 to 1 times the end
};

// The flow of the layer at this length, or at infinity, on the nodes or draws that all lengths share.
FlowField twin_field(const LayerCompareProblem& problem, Length length);

// Keys "reference", "softmax L=10", .., "softmax eps=0.1", .. as those of heads.
Cells<TwinRow> twin_cells(const LayerCompareProblem& problem);

}  // namespace esscher
