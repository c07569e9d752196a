#include "esscher/heads/detail/whitening.h"

namespace esscher {

Eigensystem oriented_eigensystem(const MatrixView& symmetric) {
  Eigensystem out = eigensystem(symmetric);
  const Index d = out.values.size();
  const Vector weights = Vector::LinSpaced(d, 1, static_cast<double>(d)).cwiseInverse();
  for (Index k = 0; k < d; ++k) {
    if (out.vectors.col(k).dot(weights) < 0) out.vectors.col(k) *= -1;
  }
  return out;
}

Whitening whitening(const Matrix& C) {
  const Eigensystem e = oriented_eigensystem(C);
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
