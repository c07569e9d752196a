#include "esscher/random/widened_normals.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "esscher/base/error.h"

namespace esscher {

Vector widening(const VectorView& lambda) {
  constexpr double kMaxSpread = 3, kMaxVariance = 4, kNegligible = 0.01;
  std::vector<Index> sharpest_first(static_cast<std::size_t>(lambda.size()));
  std::iota(sharpest_first.begin(), sharpest_first.end(), 0);
  std::ranges::stable_sort(sharpest_first, [&](Index i, Index j) { return lambda[i] > lambda[j]; });
  Vector r = Vector::Ones(lambda.size());
  double spread = 1;  // E w^2, which one direction multiplies by r/sqrt(2r - 1)
  for (const Index i : sharpest_first) {
    if (lambda[i] <= kNegligible) break;
    const double wide = lambda[i] < 0.3 ? 1.5 / (1 - 2 * lambda[i]) : kMaxVariance;
    spread *= wide / std::sqrt(2 * wide - 1);
    if (spread > kMaxSpread) break;
    r[i] = wide;
  }
  return r;
}

WidenedNormals widen(const MatrixView& normals, const VectorView& r) {
  check_dimension("widen", "r", r.size(), normals.cols());
  const Vector square = normals.cwiseAbs2() * (r.array() - 1).matrix();
  return {normals * r.cwiseSqrt().asDiagonal(),
          std::sqrt(r.prod()) * (-0.5 * square.array()).exp()};
}

}  // namespace esscher
