#include "esscher/base/number_text.h"

#include <cmath>
#include <cstddef>
#include <cstdio>

namespace esscher {

std::string brief(double x, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, x);
  return text;
}

std::string brief_or_dash(double x, int digits) {
  return std::isfinite(x) ? brief(x, digits) : "-";
}

std::string brief(std::int64_t n) {
  std::int64_t power = 10000;
  for (int exponent = 4; exponent <= 18; ++exponent) {
    if (n == power) return "1e" + std::to_string(exponent);
    if (exponent < 18) power *= 10;
  }
  return std::to_string(n);
}

std::vector<std::string> brief_apart(const std::vector<double>& numbers, int digits) {
  constexpr int kAllDigits = 17;
  std::vector<std::string> out;
  for (;; ++digits) {
    out.clear();
    bool is_apart = true;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      out.push_back(brief(numbers[i], digits));
      is_apart = is_apart && (i == 0 || out[i] != out[i - 1] || numbers[i] == numbers[i - 1]);
    }
    if (is_apart || digits >= kAllDigits) return out;
  }
}

std::string brief_with_error(double value, double std_error) {
  return brief(value) + " ± " + brief(std_error, 1);
}

}  // namespace esscher
