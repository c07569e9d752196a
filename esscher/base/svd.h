// Singular value decomposition of A [m,n]: A = U diag(s) V_1', where V_1 holds the first min(m,n)
// columns of V.
//
// This is a function because every file that compiles Eigen's SVD itself pays ten seconds for it.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

struct Svd {
  Matrix U;  // [m, min(m,n)]
  Vector s;  // [min(m,n)], descending
  Matrix V;  // [n,n], complete
};
Svd svd(const MatrixView& A);

}  // namespace esscher
