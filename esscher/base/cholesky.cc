#include "esscher/base/cholesky.h"

#include <Eigen/Cholesky>

namespace esscher {

std::optional<Matrix> cholesky(const MatrixView& G) {
  const Eigen::LLT<Eigen::MatrixXd> system(G);
  if (system.info() != Eigen::Success) return std::nullopt;
  return Matrix(system.matrixL());
}

Matrix solve_lower(const MatrixView& L, const MatrixView& B) {
  Eigen::MatrixXd X = B;
  Eigen::MatrixXd(L).triangularView<Eigen::Lower>().solveInPlace(X);
  return X;
}

std::optional<Matrix> solve_positive(const MatrixView& G, const MatrixView& B) {
  const Eigen::LLT<Eigen::MatrixXd> system(G);
  if (system.info() != Eigen::Success) return std::nullopt;
  return Matrix(system.solve(Eigen::MatrixXd(B)));
}

}  // namespace esscher
