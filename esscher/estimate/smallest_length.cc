#include "esscher/estimate/smallest_length.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// f(low) > target >= f(high); low may lie just below the range, where f is not known.
struct Bracket {
  std::int64_t low, high;
  double at_low, at_high;
};

std::int64_t middle(const Bracket& b, double target, Narrowing narrowing, int step) {
  if (narrowing == Narrowing::halves) return b.low + (b.high - b.low) / 2;
  const double x = static_cast<double>(std::max<std::int64_t>(b.low, 1));
  double share = 0.5;
  if (step % 3 != 0 && b.at_high > 0 && std::isfinite(b.at_low)) {
    share = std::log(b.at_low / target) / std::log(b.at_low / b.at_high);
  }
  const double guess = x * std::pow(static_cast<double>(b.high) / x, share);
  return std::clamp(static_cast<std::int64_t>(guess), b.low + 1, b.high - 1);
}

}  // namespace

SmallestLength smallest_length(const std::function<double(std::int64_t)>& f, double target,
                               const LengthRange& range) {
  if (range.from < 1 || range.to < range.from || range.growth < 2) {
    throw_argument("smallest_length", "range",
                   std::to_string(range.from) + " to " + std::to_string(range.to),
                   "1 <= from <= to, and a growth >= 2");
  }
  const std::int64_t first = range.first > 0 ? range.first : range.from;
  constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();
  Bracket b{range.from - 1, std::clamp(first, range.from, range.to), kNotKnown, 0};
  b.at_high = f(b.high);
  while (!(b.at_high <= target)) {
    if (b.high == range.to) return {std::nullopt, b.at_high, b.at_high};
    b.low = b.high;
    b.at_low = b.at_high;
    b.high = b.high > range.to / range.growth ? range.to : b.high * range.growth;
    b.at_high = f(b.high);
  }
  const auto allowed = [&] {
    return std::max<std::int64_t>(1, range.resolution > 0 ? b.low / range.resolution : 1);
  };
  for (int step = 1; b.high - b.low > allowed(); ++step) {
    const std::int64_t L = middle(b, target, range.narrowing, step);
    const double value = f(L);
    if (value <= target) {
      b.high = L;
      b.at_high = value;
    } else {
      b.low = L;
      b.at_low = value;
    }
  }
  return {b.high, b.at_high, b.at_low};
}

}  // namespace esscher
