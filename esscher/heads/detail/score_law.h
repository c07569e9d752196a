// The law of a head's scores, as measured and as a fitted surrogate has it. Scores are standardised
// per query, x = (s - mean) / deviation, and counted as a density in kHistogramBins equal bins over
// [-5, 5].
#pragma once

#include <vector>

#include "esscher/heads/detail/walk.h"

namespace esscher {

// The scores of all queries on the first chunk of their prompts; zero if no query's scores vary.
Vector score_histogram(const Head& head, const std::vector<PromptResult>& results);

// The same of given scores, one vector per query.
Vector score_histogram(const std::vector<Vector>& scores);

// The same density for keys that are drawn from the surrogate: scores are then mixtures of normals.
Vector score_density(const Surrogate& surrogate, const std::vector<PromptResult>& results);

}  // namespace esscher
