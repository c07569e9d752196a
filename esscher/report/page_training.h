// The report of `esscher icl train`: loss over steps, the final risk beside Bayes, parameters over
// steps.
#pragma once

#include <string>
#include <vector>

#include "esscher/report/page.h"
#include "esscher/training/chain.h"

namespace esscher {

// `risks` are the final risk and the Bayes risks beside it; `rerun` is the command that made the run.
Page training_page(const TrainResult& result, const std::vector<RiskRow>& risks,
                   const std::string& rerun);

// The lines across the loss curve: Bayes at the length of the prompts and at L = infinity, one line
// where they are too close for two labels, none where a log axis cannot show it.
std::vector<ReferenceLine> bayes_lines(const std::vector<RiskRow>& risks);

}  // namespace esscher
