// The best prediction from L tokens: the posterior mean of w is ridge regression with penalty
// sig2/s2, and
//
//   Bayes risk(L) = 1/2 E tr( Sq Cov(w | X) ) + irreducible
//   Cov(w | X)    = s2 (I + (s2/sig2) X'X)^{-1}            if sig2 > 0
//   Cov(w | X)    = s2 (I - P)                             if sig2 = 0
//
// P is the orthogonal projection on the span of the rows of X [L,d].
//
// X'X is drawn. For Gaussian features it is a Wishart matrix, drawn by Bartlett's decomposition at
// a cost that does not depend on L; for other features X is drawn row by row. L = 0 gives the risk
// of the prior. If Sigma is positive definite, L = infinity gives the irreducible risk, and so does
// L >= d without noise. How many directions rows span is read in white coordinates, so that small
// variances in Sigma are not taken for none.
#pragma once

#include "esscher/base/estimate.h"
#include "esscher/base/length.h"
#include "esscher/random/stream.h"
#include "esscher/task/regression.h"

namespace esscher {

// The mean over `replicates` >= 2 draws of X'X. The engine of the answer is sampled for Gaussian
// features, direct for others, and exact where no draw is needed.
Estimate bayes_risk(const LinearRegressionTask& task, Length length, std::int64_t replicates,
                    const Stream& stream);

}  // namespace esscher
