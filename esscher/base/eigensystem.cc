#include "esscher/base/eigensystem.h"

#include <Eigen/Eigenvalues>

namespace esscher {

Eigensystem eigensystem(const MatrixView& symmetric) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(symmetric);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

}  // namespace esscher
