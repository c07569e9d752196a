// Products of dense double matrices at the speed of the machine the program runs on. Eigen,
// compiled for the oldest supported processor, runs at a quarter of it; these are where it matters.
#pragma once

#include <span>

#include "esscher/base/linalg.h"

namespace esscher {

// C += A B,  A [m,k], B [k,n], C [m,n].
void add_product(const MatrixView& A, const MatrixView& B, Matrix& C);

// C += A' B,  A [m,k], B [m,n], C [k,n].
void add_gram(const MatrixView& A, const MatrixView& B, Matrix& C);

// C += A' A for symmetric C, at little more than half the cost.
void add_gram(const MatrixView& A, Matrix& C);

// C += sum_i weights_i a a', sum += sum_i weights_i a over the rows a = A[rows_i]; C symmetric.
void add_weighted_gram(const MatrixView& A, std::span<const Index> rows,
                       std::span<const double> weights, Matrix& C, Vector& sum);

// Upper triangular W with W W' = C^-1, and log det C; C [d,d] symmetric positive definite (NaN
// otherwise).
Matrix inverse_factor(const Matrix& C, double& log_determinant);

// |W' a - centre|^2 for the rows a of A [m,d], or for the listed ones; W [d,d] upper triangular
// (what stands below the diagonal must be zero), centre [d]. The exponents of Gaussian densities.
Vector whitened_squares(const MatrixView& A, const Matrix& W, const Vector& centre);
Vector whitened_squares(const MatrixView& A, std::span<const Index> rows, const Matrix& W,
                        const Vector& centre);

}  // namespace esscher
