#include "esscher/heads/detail/whitening.h"

#include "esscher/base/eigensystem.h"

namespace esscher {

Whitening whitening(const Matrix& C) {
  const Eigensystem e = eigensystem(C);
  const double floor = 1e-12 * e.values.tail(1)(0);
  const Index r = (e.values.array() > floor).count();
  const Vector root = e.values.tail(r).cwiseSqrt();
  return {.down = e.vectors.rightCols(r) * root.cwiseInverse().asDiagonal(),
          .up = e.vectors.rightCols(r) * root.asDiagonal()};
}

Matrix centred_rows(const MatrixView& rows) {
  return rows.rowwise() - Vector(rows.colwise().mean()).transpose();
}

}  // namespace esscher
