// Products of dense double matrices at the speed of the machine the program runs on. Eigen,
// compiled for the oldest supported processor, runs at a quarter of it; these are where it matters.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

// C += A B,  A [m,k], B [k,n], C [m,n].
void add_product(const MatrixView& A, const MatrixView& B, Matrix& C);

// C += A' B,  A [m,k], B [m,n], C [k,n].
void add_gram(const MatrixView& A, const MatrixView& B, Matrix& C);

// C += A' A for symmetric C, at little more than half the cost.
void add_gram(const MatrixView& A, Matrix& C);

// out_i += |W' a_i - centre|^2 for the rows a_i of A [m,d]; W [d,d] upper triangular (what stands
// below the diagonal must be zero), centre [d], out [m]. The exponents of Gaussian densities.
void add_whitened_squares(const MatrixView& A, const Matrix& W, const Vector& centre, Vector& out);

}  // namespace esscher
