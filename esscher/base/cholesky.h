// The Cholesky factor L [d,d] of a symmetric positive definite matrix G [d,d], lower triangular:
//
//   G = L L'
//
// These are functions because every file that compiles Eigen's solver itself pays four seconds for it.
#pragma once

#include <optional>

#include "esscher/base/linalg.h"

namespace esscher {

// L, or nothing if G is not positive definite. Only the lower triangle of G is read.
std::optional<Matrix> cholesky(const MatrixView& G);

// L^{-1} B [d,n] for a lower triangular L [d,d].
Matrix solve_lower(const MatrixView& L, const MatrixView& B);

// G^{-1} B [d,n], or nothing if G is not positive definite.
std::optional<Matrix> solve_positive(const MatrixView& G, const MatrixView& B);

}  // namespace esscher
