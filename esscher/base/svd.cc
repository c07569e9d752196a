#include "esscher/base/svd.h"

#include <Eigen/SVD>

namespace esscher {

Svd svd(const MatrixView& A) {
  const Eigen::BDCSVD<Eigen::MatrixXd> system(A, Eigen::ComputeThinU | Eigen::ComputeFullV);
  return {system.matrixU(), system.singularValues(), system.matrixV()};
}

}  // namespace esscher
