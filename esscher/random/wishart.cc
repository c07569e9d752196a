#include "esscher/random/wishart.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "esscher/base/error.h"
#include "esscher/random/draws.h"

namespace esscher {

Matrix bartlett_factor(const Stream& stream, Index k, std::int64_t L) {
  if (L < 1) throw_argument("wishart", "L", std::to_string(L), "an integer >= 1");
  const Index columns = static_cast<Index>(std::min<std::int64_t>(k, L));
  Matrix A = Matrix::Zero(k, columns);
  const Stream normals = stream.split(0);
  const Stream squares = stream.split(1);
  for (Index j = 0; j < columns; ++j) {
    const auto child = static_cast<std::uint64_t>(j);
    const auto dof = static_cast<double>(L - j);
    A(j, j) = std::sqrt(chi_square_draw(squares.split(child), dof));
    for (Index i = j + 1; i < k; ++i) {
      A(i, j) = normals.normal(static_cast<std::uint64_t>(i * columns + j));
    }
  }
  return A;
}

Matrix wishart_mean(const Stream& stream, const MatrixView& F, std::int64_t L) {
  const Matrix A = bartlett_factor(stream, F.cols(), L);
  const Matrix FA = F * A / std::sqrt(static_cast<double>(L));
  return FA * FA.transpose();
}

}  // namespace esscher
