// The Gram matrix of a Gaussian prompt without its tokens:
//
//   sum_{l<=L} z_l z_l' ,  z_l iid N(0, G)      is Wishart(G, L)
//
// With G = F F' (F [d,k], k the rank) it is F A A' F' for Bartlett's lower trapezoidal matrix A
// [k, min(k,L)], whose entries are independent:
//
//   A_jj^2 ~ chi-square(L - j),  j = 0, 1, ..        A_ij ~ N(0,1) below the diagonal
//
// The cost is O(d^3) for any L from 1 to 1e15 and any rank of G; L may be smaller than k.
#pragma once

#include <cstdint>

#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"

namespace esscher {

// A [k, min(k,L)] as above; A A' is the Gram matrix of L standard normal tokens in R^k.
Matrix bartlett_factor(const Stream& stream, Index k, std::int64_t L);

// Wishart(F F', L) / L  [d,d] for a factor F [d,k] (psd_factor).
Matrix wishart_mean(const Stream& stream, const MatrixView& F, std::int64_t L);

}  // namespace esscher
