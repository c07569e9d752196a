// An orthonormal basis Q [k,rank] of the span of the columns of A [k,n], by QR with column pivoting:
//
//   A P = Q R,  rank = the first columns with |R_ii| > floor, and at most `most` of them.
//
// This is a function because every file that compiles Eigen's pivoted QR pays eight seconds for it.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

Eigen::MatrixXd orthonormal_basis(const Eigen::MatrixXd& A, double floor, Index most);

// The x [n] that makes |A x - b| smallest, for A [k,n] with independent columns.
Vector least_squares(const Eigen::MatrixXd& A, const VectorView& b);

}  // namespace esscher
