// Dense arrays of the project: Eigen, double, row-major, so that an [n,d] array of tokens has one
// token per row and shares memory with NumPy and with the kernels.
#pragma once

#include <Eigen/Core>
#include <string_view>

namespace esscher {

using Index = Eigen::Index;
using Vector = Eigen::VectorXd;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Read-only views; they bind to Vector, Matrix, blocks and Map without a copy.
using VectorView = Eigen::Ref<const Vector>;
using MatrixView = Eigen::Ref<const Matrix>;

// Throws ArgumentError naming the first entry that is NaN or infinite.
void check_finite(std::string_view where, std::string_view argument, const MatrixView& values);

// Factor F [d,rank] of a positive semidefinite matrix G [d,d], so that G = F F'; G may be singular.
// Throws ArgumentError if G is not square, not symmetric (relative 1e-10) or has an eigenvalue
// below -1e-10 times the largest.
Matrix psd_factor(std::string_view where, std::string_view argument, const MatrixView& G);

// Symmetric PSD square root G^{1/2} [d,d]; same errors.
Matrix psd_sqrt(std::string_view where, std::string_view argument, const MatrixView& G);

// Largest eigenvalue of a symmetric matrix [d,d]; 0 for d = 0.
double max_eigenvalue(const MatrixView& symmetric);

}  // namespace esscher
