// The outputs of a whole prompt by a head with an exact window and a tail (heads/window.h).
//
// Of a causal head the m queries belong to the last m of n keys: each is answered after its own key
// came and before the next one. Without a mask all keys come before the first query.
#pragma once

#include "esscher/heads/window.h"

namespace esscher {

// Q [m,dk], K [n,dk], V [n,dv]; outputs [m,dv]. Throws ArgumentError if shapes disagree, if a causal
// head has more queries than keys, and if heavy keys are asked for where the queries that would
// weigh them are not all there: heavy > 0 needs a causal head with m = n.
Matrix windowed_outputs(const WindowOptions& options, const MatrixView& Q, const MatrixView& K,
                        const MatrixView& V, double scale, bool causal = true);

}  // namespace esscher
