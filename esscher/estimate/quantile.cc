#include "esscher/estimate/quantile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace esscher {
namespace {

constexpr double kTwoSided = 1.96;

// Between the numbers at neighbouring ranks of a sorted list, from 0.
double between_ranks(const std::vector<double>& sorted, double rank) {
  const double last = static_cast<double>(sorted.size()) - 1;
  const double inside = std::clamp(rank, 0.0, last);
  const double low = std::min(std::floor(inside), std::max(0.0, last - 1));
  const double x = sorted[static_cast<std::size_t>(low)];
  const double y = sorted[static_cast<std::size_t>(std::min(low + 1, last))];
  return std::lerp(x, y, inside - low);
}

}  // namespace

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
  if (draws.empty()) return {.engine = engine};
  std::vector<double> sorted = draws;
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(draws.size());
  const double middle = 0.5 * (n - 1), half = 0.5 * kTwoSided * std::sqrt(n);
  const double width = between_ranks(sorted, middle + half) - between_ranks(sorted, middle - half);
  return {.value = median(draws),
          .std_error = width / (2 * kTwoSided),
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
