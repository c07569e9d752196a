// A training chain (training/chain.h) into a run: every checkpoint is a cell, and the state of the
// trainer is a document, so that a run that was stopped goes on where it was.
#pragma once

#include <functional>
#include <vector>

#include "esscher/store/run.h"
#include "esscher/training/chain.h"

namespace esscher {

// Runs what is missing of the chain, here if `run` is null, and returns the rows of all finished
// checkpoints; `after` is called after each. The state is kept before its checkpoint is committed, so
// a run that stopped between the two goes on from the state and commits the checkpoint then.
std::vector<TrainRow> run_chain(Chain& chain, Run* run,
                                const std::function<void(const Chain&)>& after = {});

// The final risk and, for linear regression, the risks of Bayes at this length and at L = infinity.
std::vector<RiskRow> risks_beside(const TrainResult& result, const TrainConfig& config);

}  // namespace esscher
