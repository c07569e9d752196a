// The product of a float32 model: Y = X W', both stored as weights of linear layers are. Sums are
// taken in double precision, so that an entry of Y is rounded once: in single precision the sums
// would cost more accuracy than the weights and all stored values together. The order of a sum is
// that of its terms, so its bits are the same for any number of threads and any instruction set.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

using MatrixF = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using VectorF = Eigen::VectorXf;
using MatrixViewF = Eigen::Ref<const MatrixF>;

// X [n,k], W [m,k] -> [n,m]. The rows of W are shared between threads.
MatrixF times_transposed(const MatrixViewF& X, const MatrixViewF& W);

}  // namespace esscher
