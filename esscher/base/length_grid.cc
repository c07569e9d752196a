#include "esscher/base/length_grid.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "esscher/base/error.h"

namespace esscher {

std::vector<std::int64_t> length_grid(std::int64_t from, std::int64_t to, double per_decade) {
  if (from < 1 || to < from || !(per_decade > 0)) {
    throw_argument("length_grid", "from, to", std::to_string(from) + ", " + std::to_string(to),
                   "1 <= from <= to and a positive number per decade");
  }
  const double decades = std::log10(static_cast<double>(to) / static_cast<double>(from));
  const int steps = std::max(1, static_cast<int>(std::lround(decades * per_decade)));
  std::vector<std::int64_t> lengths;
  for (int i = 0; i <= steps; ++i) {
    const double x = static_cast<double>(from) * std::pow(10.0, decades * i / steps);
    const std::int64_t L = i == steps ? to : std::llround(x);
    if (lengths.empty() || L > lengths.back()) lengths.push_back(L);
  }
  return lengths;
}

}  // namespace esscher
