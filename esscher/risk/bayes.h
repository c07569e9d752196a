// The best prediction from L tokens: the posterior mean of w is ridge regression with penalty
// sig2/s2, and
//
//   Bayes risk(L) = 1/2 E tr( Sq Cov(w | X) ) + irreducible
//   Cov(w | X)    = s2 (I + (s2/sig2) X'X)^{-1}            if sig2 > 0
//   Cov(w | X)    = s2 (I - P)                             if sig2 = 0
//
// P is the orthogonal projection on the span of the rows of X [L,d].
//
// X'X is drawn: Wishart by Bartlett's decomposition for Gaussian features, so the cost does not
// depend on L; row by row for other features. L = 0 gives the prior, L = infinity the irreducible
// risk (Sigma positive definite); noise-free with L >= d likewise.
#pragma once

#include "esscher/base/estimate.h"
#include "esscher/base/length.h"
#include "esscher/random/stream.h"
#include "esscher/task/regression.h"

namespace esscher {

// Mean over `replicates` draws of X'X (>= 2); engine sampled for Gaussian features, direct
// otherwise, exact where no draw is needed.
Estimate bayes_risk(const LinearRegressionTask& task, Length length, std::int64_t replicates,
                    const Stream& stream);

}  // namespace esscher
