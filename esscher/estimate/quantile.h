// Quantiles over queries: the nearest order statistic, and for an even count the mean of the two in
// the middle at p = 1/2. 0 of nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace esscher {

inline double quantile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  const auto at = std::lround(p * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  const double high = values[at];
  if (p != 0.5 || values.size() % 2 == 1) return high;
  const double low = *std::max_element(values.begin(), values.begin() + at);
  return 0.5 * (low + high);
}

inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }

}  // namespace esscher
