#include "esscher/base/number_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace esscher {
namespace {

// 0 for the place of ones, -1 for that of tenths: where the first digit of x stands.
int decimal_place(double x) { return static_cast<int>(std::floor(std::log10(std::abs(x)))); }

std::string with_decimals(double x, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, x);
  return text;
}

}  // namespace

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

std::string brief_to_error(double x, double error) {
  constexpr int kMostDigits = 6;
  if (!(error > 0) || !std::isfinite(error)) return brief(x, kMostDigits);
  if (x == 0) return "0";
  const int first = decimal_place(x);
  const int last = std::max(decimal_place(error) - 1, first - kMostDigits + 1);
  if (first < -4 || first >= kMostDigits)
    return brief(x, std::clamp(first - last + 1, 1, kMostDigits));
  if (last < 0) return with_decimals(x, -last);
  const double unit = std::pow(10.0, last);
  return with_decimals(std::round(x / unit) * unit, 0);
}

std::string brief_with_error(double value, double std_error) {
  if (!(std_error > 0)) return brief(value) + " ± " + brief(std_error);
  const int last = decimal_place(std_error) - 1;
  const bool plain = last < 0 && last >= -6;
  return brief_to_error(value, std_error) + " ± " +
         (plain ? with_decimals(std_error, -last) : brief_to_error(std_error, std_error));
}

}  // namespace esscher
