#include "esscher/simd/gemm_float.h"

#include <algorithm>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/simd/gemm.h"

namespace esscher {

MatrixF times_transposed(const MatrixViewF& X, const MatrixViewF& W) {
  check_dimension("times_transposed", "W (columns)", W.cols(), X.cols());
  constexpr Index kRows = 48;  // rows of W that stay in the second-level cache as doubles
  const Matrix right = X.transpose().cast<double>();
  MatrixF Y(X.rows(), W.rows());
  const Index blocks = (W.rows() + kRows - 1) / kRows;
  parallel_for(blocks, [&](std::int64_t b) {
    const Index first = static_cast<Index>(b) * kRows;
    const Index rows = std::min(kRows, W.rows() - first);
    Matrix sums = Matrix::Zero(rows, X.rows());
    add_product(W.middleRows(first, rows).cast<double>(), right, sums);
    Y.middleCols(first, rows) = sums.transpose().cast<float>();
  });
  return Y;
}

}  // namespace esscher
