#include "esscher/base/length.h"

#include <charconv>
#include <cmath>

#include "esscher/base/error.h"

namespace esscher {

Length::Length(std::int64_t n) : n_(n) {
  if (n < 0) throw_argument("Length", "n", std::to_string(n), "an integer >= 0 or infinity");
}

std::int64_t Length::count() const {
  if (is_infinite()) throw ArgumentError("Length: infinity has no count, expected a finite length");
  return n_;
}

std::string Length::text() const { return is_infinite() ? "inf" : std::to_string(n_); }

Length Length::parse(const std::string& text) {
  if (text == "inf" || text == "infinity") return infinity();
  double value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  const bool integral = result.ec == std::errc() && result.ptr == end && value >= 0 &&
                        value <= 9.0e18 && value == std::floor(value);
  if (!integral) throw_argument("Length", "text", "\"" + text + "\"", "an integer >= 0 or \"inf\"");
  std::int64_t exact = 0;
  const auto integer = std::from_chars(text.data(), end, exact);
  if (integer.ec == std::errc() && integer.ptr == end) return exact;
  return static_cast<std::int64_t>(value);
}

}  // namespace esscher
