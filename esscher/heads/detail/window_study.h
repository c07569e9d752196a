// Windows and tails of one head, measured against its softmax outputs: error against w and n, state,
// multiply-adds, the exact control, and a verdict in words.
//
// A causal head is read as a decoding loop would read it: query i sees the first keys and the last
// keys up to its own. A head without a mask is read as a prompt that ended before the queries came.
#pragma once

#include <string>
#include <vector>

#include "esscher/heads/detail/walk.h"
#include "esscher/heads/diagnosis.h"
#include "esscher/heads/head.h"
#include "esscher/heads/kept_keys.h"

namespace esscher {

// One row per window and tail. `mixture`, if given, makes a tail of its components.
std::vector<WindowRow> window_rows(const Head& head, const HeadOptions& options,
                                   const std::vector<PromptResult>& results,
                                   const std::optional<MixtureFit>& mixture);

// The same for a head with rules (heads/rules.h), without controls and mixtures.
std::vector<WindowRow> ruled_window_rows(const Head& head, const HeadOptions& options,
                                         const KeptKeys& kept, const std::vector<Index>& queries,
                                         const std::vector<PromptResult>& results);

// The window of options.windows nearest to 16, on prefixes of doubling length up to one chunk.
// Queries of a causal head are taken from the last quarter of each prefix.
std::vector<WindowLengthRow> window_length_rows(const Head& head, const HeadOptions& options,
                                                const std::vector<PromptResult>& results);

// Marks the cheapest row whose error is within the tolerance, or the row that errs least if there is
// none, and says it in words: "linear beyond 32 keys: error 0.09 with 6600 numbers instead of
// n(dₖ + dᵥ) = 24576 (tail: finite)". Softmax keeps full_state numbers, `keys` in words times
// dₖ + dᵥ. Rows that keep more than half of them do not count, nor mixtures, which were fitted to the
// keys that they stand for.
std::string judge_windows(std::vector<WindowRow>& rows, double tolerance, Index full_state,
                          const std::string& keys = "n");

}  // namespace esscher
