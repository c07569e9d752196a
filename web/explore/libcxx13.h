// What the library uses of C++20 and the libc++ 13 of Debian's emscripten does not have. CMake includes it
// before the files that need it, and only there.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string>

namespace std {

template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}

// The shortest text that reads back as x; exponents have no leading zero, as those of to_chars.
inline to_chars_result to_chars(char* first, char* last, double x) {
  char text[32];
  int n = 0;
  for (int digits = 1; digits <= 17; ++digits) {
    n = snprintf(text, sizeof text, "%.*g", digits, x);
    if (!(strtod(text, nullptr) != x)) break;
  }
  if (n > last - first) return {last, errc::value_too_large};
  return {copy(text, text + n, first), errc()};
}

inline from_chars_result from_chars(const char* first, const char* last, double& x) {
  const string text(first, last);
  char* end = nullptr;
  const double value = strtod(text.c_str(), &end);
  if (end == text.c_str() || *first == '+' || *first == ' ') return {first, errc::invalid_argument};
  x = value;
  return {first + (end - text.c_str()), errc()};
}

namespace ranges {

template <class Range, class Value, class Projection>
auto find(Range&& range, const Value& value, Projection projection) {
  return find_if(begin(range), end(range),
                 [&](const auto& item) { return invoke(projection, item) == value; });
}
template <class Range, class Value>
auto lower_bound(Range&& range, const Value& value) {
  return std::lower_bound(begin(range), end(range), value);
}
template <class Range, class Predicate>
bool all_of(Range&& range, Predicate predicate) {
  return std::all_of(begin(range), end(range), predicate);
}
template <class Range, class Compare>
void stable_sort(Range&& range, Compare compare) {
  std::stable_sort(begin(range), end(range), compare);
}
struct Nothing {};
template <class Range, class Projection>
auto max_element(Range&& range, Nothing, Projection projection) {
  return std::max_element(begin(range), end(range), [&](const auto& a, const auto& b) {
    return invoke(projection, a) < invoke(projection, b);
  });
}

}  // namespace ranges
}  // namespace std
