#include "esscher/base/eigensystem.h"

namespace esscher {

Eigensystem eigensystem(const MatrixView& symmetric) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(symmetric);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

}  // namespace esscher
