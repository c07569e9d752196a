// --dry-run of gradient flows: how long they will take.
//
// The integrator chooses its steps on the way. How many gradients it asks for depends on the start and
// on the task, and hardly on the length: the flow of the infinite prompt, where the risk has a closed
// form, counts them in milliseconds. What one gradient costs is measured at each length.
#pragma once

#include <string>
#include <vector>

#include "cli/dry_run.h"
#include "esscher/training/flow.h"
#include "esscher/training/layer_twins.h"

namespace esscher::cli {

struct FlowsToCome {
  ModelKind kind = ModelKind::softmax;
  Length length = Length::infinity();
  int count = 1;
  std::int64_t besides = 0;  // gradients that each asks for besides its integrator, for error bars
};

// Without an estimate if the risk at L = infinity has no closed form.
DryRun flow_estimate(const std::string& verb, const std::string& what, std::int64_t cells,
                     const FlowSetup& setup, const std::vector<FlowsToCome>& flows);

// The flow of a layer, and a comparison of flows: the flow at L = infinity, which costs little, counts
// the gradients.
DryRun flow_estimate(const LayerFlowProblem& problem);
DryRun flow_estimate(const LayerCompareProblem& problem);

// Flows that a search for L(eps) takes.
inline constexpr int kFlowsPerSearch = 12;

}  // namespace esscher::cli
