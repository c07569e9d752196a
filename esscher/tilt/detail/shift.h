// The point c relative to which tokens are read.
//
// In each coordinate c is the value nearest to 0 among a few tokens spread over the rows, or 0 if
// their signs differ. Tokens far from the origin thus lose their common part before it can cost
// digits. One outlier among them cannot move c away from the others, and |c| never exceeds their
// values.
#pragma once

#include <algorithm>
#include <cmath>

#include "esscher/tilt/tilt.h"

namespace esscher::detail {

// rows [n,d] with n >= 1 -> shift [d]. Returns whether any coordinate is not 0. Where a shift costs
// a copy of the tokens, 16 samples make one unlikely unless the tokens need it.
template <Index kSamples = 4, class T>
bool choose_shift(const Rows<T>& rows, T* shift) {
  bool any = false;
  for (Index j = 0; j < rows.d; ++j) {
    T low = rows.data[j], high = low;
    for (Index i = 1; i < kSamples; ++i) {
      const T x = rows.data[(rows.n - 1) * i / (kSamples - 1) * rows.stride + j];
      low = std::min(low, x);
      high = std::max(high, x);
    }
    const T c = std::max(low, T(0)) + std::min(high, T(0));  // at most one of them is not 0
    shift[j] = std::isfinite(c) ? c : T(0);
    any = any || shift[j] != 0;
  }
  return any;
}

}  // namespace esscher::detail
