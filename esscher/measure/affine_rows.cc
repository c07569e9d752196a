#include "esscher/measure/detail/affine_rows.h"

namespace esscher::detail {
namespace {

// Eigen's loops take longer to start than a short row takes.
constexpr Index kShort = 8;

void add_multiple(double factor, const double* row, Index size, double* to) {
  if (size < kShort) {
    for (Index i = 0; i < size; ++i) to[i] += factor * row[i];
    return;
  }
  Eigen::Map<Vector>(to, size) += factor * Eigen::Map<const Vector>(row, size);
}

}  // namespace

Matrix affine_rows(const VectorView& c, const MatrixView& B, const Matrix& z) {
  const Index p = B.rows(), m = B.cols();
  const Matrix columns = B.transpose();  // [m,p]: a column of B is a row in memory
  Matrix out = c.transpose().replicate(z.rows(), 1);
  for (Index l = 0; l < z.rows(); ++l) {
    const double* token = z.data() + l * m;
    double* to = out.data() + l * p;
    for (Index j = 0; j < m; ++j) add_multiple(token[j], columns.data() + j * p, p, to);
  }
  return out;
}

}  // namespace esscher::detail
