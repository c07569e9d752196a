// The point c relative to which tokens are read.
//
// In each coordinate c is the value nearest to 0 among four tokens spread over the rows, or 0 if
// their signs differ. Tokens far from the origin thus lose their common part before it can cost
// digits. One outlier among the four cannot move c away from the others, and |c| never exceeds the
// four values.
#pragma once

#include <algorithm>
#include <cmath>

#include "esscher/tilt/tilt.h"

namespace esscher::detail {

// rows [n,d] with n >= 1 -> shift [d]
template <class T>
void choose_shift(const Rows<T>& rows, T* shift) {
  const T* sample[4];
  for (Index i = 0; i < 4; ++i) sample[i] = rows.data + (rows.n - 1) * i / 3 * rows.stride;
  for (Index j = 0; j < rows.d; ++j) {
    const auto [low, high] = std::minmax({sample[0][j], sample[1][j], sample[2][j], sample[3][j]});
    const T c = std::max(low, T(0)) + std::min(high, T(0));  // at most one of them is not 0
    shift[j] = std::isfinite(c) ? c : T(0);
  }
}

}  // namespace esscher::detail
