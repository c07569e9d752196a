// Scores of a head against what a fitted law says about them. Scores are standardised per query,
// x = (s - mean) / deviation, and counted in kHistogramBins equal bins over [-5, 5] as a density.
#pragma once

#include <vector>

#include "esscher/heads/walk.h"

namespace esscher {

// Scores of all queries against the first chunk of their prompts; zero if no query's scores vary.
Vector score_histogram(const Head& head, const std::vector<PromptResult>& results);

// The same density if keys are drawn from the surrogate: scores are then mixtures of normals.
Vector score_density(const Surrogate& surrogate, const std::vector<PromptResult>& results);

}  // namespace esscher
