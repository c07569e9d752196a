#include "esscher/base/basis.h"

#include <Eigen/QR>
#include <cmath>

namespace esscher {

Eigen::MatrixXd orthonormal_basis(const Eigen::MatrixXd& A, double floor, Index most) {
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(A);
  Index rank = 0;
  while (rank < most && std::abs(qr.matrixR()(rank, rank)) > floor) ++rank;
  return qr.householderQ() * Eigen::MatrixXd::Identity(A.rows(), rank);
}

Vector least_squares(const Eigen::MatrixXd& A, const VectorView& b) {
  return Eigen::ColPivHouseholderQR<Eigen::MatrixXd>(A).solve(b);
}

}  // namespace esscher
