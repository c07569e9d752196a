// The normal distribution function and its logarithm, which does not vanish where the function does.
#pragma once

#include <cmath>
#include <numbers>

namespace esscher {

inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// Relative accuracy 1e-8 in Phi below -30, from the first terms of its asymptotic series.
inline double log_normal_cdf(double x) {
  if (x > -30) return std::log(normal_cdf(x));
  const double y = 1 / (x * x);
  return -0.5 * x * x - std::log(-x * std::sqrt(2 * std::numbers::pi)) +
         std::log1p(-y * (1 - 3 * y));
}

}  // namespace esscher
