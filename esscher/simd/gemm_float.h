// The product of a float32 model: Y = X W', with both operands read along their rows, as weights of
// linear layers are stored. Each entry of Y is a sum over vector lanes in an order that depends on
// the width of the vectors alone, so the bits are the same for any number of threads.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

using MatrixF = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using VectorF = Eigen::VectorXf;
using MatrixViewF = Eigen::Ref<const MatrixF>;

// X [n,k], W [m,k] -> [n,m]. The rows of W are shared between threads.
MatrixF times_transposed(const MatrixViewF& X, const MatrixViewF& W);

}  // namespace esscher
