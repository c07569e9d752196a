// How many summands carry a sum: as many equal ones would have the same ratio of sums,
//
//   carriers = (sum |x_i|)^2 / sum x_i^2,   between 1 and n
//
// Below kFewCarriers the spread of the summands is seen too seldom to be known, and a standard error
// made of it is usually too small.
#pragma once

#include <limits>

#include "esscher/base/linalg.h"

namespace esscher {

inline constexpr double kFewCarriers = 64;

// Infinity if all are zero.
inline double carriers(const VectorView& x) {
  const double size = x.cwiseAbs().sum(), squares = x.squaredNorm();
  return squares > 0 ? size * size / squares : std::numeric_limits<double>::infinity();
}

}  // namespace esscher
