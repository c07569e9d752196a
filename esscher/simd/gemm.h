// Products of dense double matrices at the speed of the machine that the program runs on. Eigen is
// compiled for the oldest supported processor and runs at a quarter of that speed. These functions
// replace it where that matters.
#pragma once

#include <span>

#include "esscher/base/linalg.h"

namespace esscher {

// C += A B,  A [m,k], B [k,n], C [m,n].
void add_product(const MatrixView& A, const MatrixView& B, Eigen::Ref<Matrix> C);

// C += A' B,  A [m,k], B [m,n], C [k,n].
void add_gram(const MatrixView& A, const MatrixView& B, Matrix& C);

// C += A' A for symmetric C, at little more than half the cost.
void add_gram(const MatrixView& A, Matrix& C);

// With a_i = A[rows_i]:  C += sum_i weights_i a_i a_i',  sum += sum_i weights_i a_i.  C is
// symmetric.
void add_weighted_gram(const MatrixView& A, std::span<const Index> rows,
                       std::span<const double> weights, Matrix& C, Vector& sum);

// The upper triangular W with W W' = C^-1, and log det C. C [d,d] must be symmetric positive
// definite; the result is NaN otherwise.
Matrix inverse_factor(const Matrix& C, double& log_determinant);

// |W' a - centre|^2 for the rows a of A [m,d], or for the listed rows. These are the exponents of
// Gaussian densities. W [d,d] is upper triangular, with zeros below the diagonal; centre [d].
Vector whitened_squares(const MatrixView& A, const Matrix& W, const Vector& centre);
Vector whitened_squares(const MatrixView& A, std::span<const Index> rows, const Matrix& W,
                        const Vector& centre);

}  // namespace esscher
