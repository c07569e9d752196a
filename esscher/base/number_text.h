// Numbers as people read them. Exact text that reads back as the same double is to_text() of
// base/error.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace esscher {

// Significant digits as asked for: "0.01234", "1.2e-09", "inf", "nan".
std::string brief(double x, int digits = 4);
// The same, with a dash for what is not finite.
std::string brief_or_dash(double x, int digits = 4);
// Whole numbers as they are; powers of ten from 10^4 on as "1e6".
std::string brief(std::int64_t n);
// Numbers with as many digits as show that neighbours differ, `digits` at least: "0.0009997", "0.001".
std::vector<std::string> brief_apart(const std::vector<double>& numbers, int digits = 4);
// With two digits of its error, and six digits at most: 1e-15 is no error that a reader compares.
std::string brief_to_error(double x, double error);
// "0.1234 ± 0.0041": both to two digits of the error.
std::string brief_with_error(double value, double std_error);

}  // namespace esscher
