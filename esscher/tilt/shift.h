// The point c that tokens are read relative to.
//
// Per coordinate: of four tokens spread over the rows, the value nearest to 0, or 0 if their signs
// differ. Tokens far from the origin lose their common part before it can cost digits; one outlier
// among the four cannot move c away from the others, and |c| never exceeds the samples.
#pragma once

#include <cmath>

#include "esscher/tilt/tilt.h"

namespace esscher::detail {

// rows [n,d] with n >= 1 -> shift [d]
template <class T>
void ChooseShift(const Rows<T>& rows, T* shift) {
  const T* sample[4];
  for (Index i = 0; i < 4; ++i) sample[i] = rows.data + (rows.n - 1) * i / 3 * rows.stride;
  for (Index j = 0; j < rows.d; ++j) {
    T c = sample[0][j];
    for (int i = 1; i < 4; ++i) {
      const T x = sample[i][j];
      if (!(c * x > 0)) {
        c = 0;
      } else if (std::fabs(x) < std::fabs(c)) {
        c = x;
      }
    }
    shift[j] = std::isfinite(c) ? c : T(0);
  }
}

}  // namespace esscher::detail
