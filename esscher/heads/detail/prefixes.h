// The error of the Gaussian limit on growing prefixes of a prompt, next to the exact prediction.
#pragma once

#include <vector>

#include "esscher/heads/detail/walk.h"
#include "esscher/heads/diagnosis.h"

namespace esscher {

// Prefixes of doubling length from 16 keys on, up to the longest that fits one chunk; a few of the
// queries are enough. A prefix that is longer than the prompt of every query is left out.
std::vector<PrefixRow> prefix_rows(const Head& head, const std::vector<PromptResult>& results);

}  // namespace esscher
