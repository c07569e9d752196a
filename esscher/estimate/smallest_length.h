// The smallest L of a range with f(L) <= target, for an f that falls: the one search for lengths.
//
//   const SmallestLength found = smallest_length(D, 1e-3, {.to = 1000000});
//   found.length   L with f(L) <= target < f(L-1), or nothing if f(to) > target
//
// The search goes up from `first` by the factor `growth` until f is low enough, then narrows the
// bracket (low, high] with f(low) > target >= f(high). f is called at most once per length, so an
// expensive f needs no memory of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

namespace esscher {

enum class Narrowing {
  // f is close to a power law between neighbours: two steps of three go where that meets the
  // target, and the third halves log L, which bounds their number.
  power_law,
  halves,  // the bracket is halved; for an f of which no shape is known
};

struct LengthRange {
  std::int64_t from = 1;  // the shortest answer, >= 1
  std::int64_t to = 1;    // the longest answer, >= from
  // The first length that f is evaluated at; 0 stands for `from`. A value inside the range avoids
  // the shortest prompts where f is costly there.
  std::int64_t first = 0;
  std::int64_t growth = 8;  // >= 2
  Narrowing narrowing = Narrowing::power_law;
  // The bracket may stay as wide as low / resolution; 0 narrows it to one token.
  std::int64_t resolution = 0;
};

struct SmallestLength {
  std::optional<std::int64_t> length;  // nothing if f(to) > target
  double value = 0;                    // f(length), or f(to) if there is no answer
  // f at the largest length that was found too short, which is length - 1 unless a resolution was
  // asked for; NaN if no length was too short.
  double before = std::numeric_limits<double>::quiet_NaN();
};

// f may be infinite at short lengths. Throws ArgumentError on an empty range.
SmallestLength smallest_length(const std::function<double(std::int64_t)>& f, double target,
                               const LengthRange& range);

}  // namespace esscher
