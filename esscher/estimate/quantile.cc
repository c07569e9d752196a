#include "esscher/estimate/quantile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace esscher {

double quantile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::ptrdiff_t>(
      std::lround(std::clamp(p, 0.0, 1.0) * static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  const double high = values[static_cast<std::size_t>(rank)];
  if (p != 0.5 || values.size() % 2 == 1) return high;
  return 0.5 * (*std::max_element(values.begin(), values.begin() + rank) + high);
}

Estimate median_estimate(const std::vector<double>& draws, Engine engine) {
  const double half = 0.98 / std::sqrt(static_cast<double>(draws.size()));
  const double width = order_statistic(draws, 0.5 + half) - order_statistic(draws, 0.5 - half);
  return {.value = median(draws),
          .std_error = width / (2 * 1.96),
          .n = static_cast<std::int64_t>(draws.size()),
          .engine = engine};
}

double order_statistic(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const double n = static_cast<double>(values.size());
  const auto rank = static_cast<std::ptrdiff_t>(std::clamp(std::floor(share * n), 0.0, n - 1));
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<std::size_t>(rank)];
}

}  // namespace esscher
