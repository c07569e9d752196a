#include "esscher/paper/test_laws.h"

#include <cmath>

namespace esscher::paper {

Empirical grid_prompt(const Vector& m, const Matrix& F, double reach) {
  const auto half = static_cast<Index>(std::ceil(reach / kGridStep));
  const Index side = 2 * half + 1;
  Index n = 1;
  for (Index j = 0; j < F.cols(); ++j) n *= side;
  Matrix tokens(n, m.size());
  Vector weights(n);
  Vector g(F.cols());
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0, rest = i; j < F.cols(); ++j, rest /= side) {
      g(j) = kGridStep * static_cast<double>(rest % side - half);
    }
    tokens.row(i) = (m + F * g).transpose();
    weights(i) = std::exp(-g.squaredNorm() / 2);
  }
  return {std::move(tokens), weights};
}

Matrix random_matrix(const Stream& stream, Index rows, Index cols, double scale) {
  Matrix out(rows, cols);
  stream.fill_normal(0, {out.data(), static_cast<std::size_t>(out.size())});
  return scale * out;
}

}  // namespace esscher::paper
