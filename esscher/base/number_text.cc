#include "esscher/base/number_text.h"

#include <cmath>
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

std::string brief_with_error(double value, double std_error) {
  return brief(value) + " ± " + brief(std_error, 1);
}

}  // namespace esscher
