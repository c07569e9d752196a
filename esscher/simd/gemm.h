// Products of dense double matrices at the speed of the machine the program runs on. Eigen,
// compiled for the oldest supported processor, runs at a quarter of it; these two are where it
// matters.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

// C += A B,  A [m,k], B [k,n], C [m,n].
void add_product(const MatrixView& A, const MatrixView& B, Matrix& C);

// C += A' B,  A [m,k], B [m,n], C [k,n].
void add_gram(const MatrixView& A, const MatrixView& B, Matrix& C);

}  // namespace esscher
