// A formula of one variable n, as a person types it: 0.1*log(n/4096) + 1.
//
//   sum      term  { + | - term }
//   term     power { * | / power }
//   power    [+ | -] atom [ ^ power ]            the power binds to the right, before the sign
//   atom     number | n | pi | e | ( sum ) | log | sqrt | exp | floor ( sum ) | min | max ( sum , sum )
//
// log is the natural logarithm.
#pragma once

#include <functional>
#include <string>

namespace esscher {

// Throws ArgumentError naming the text, and the place and the word that were not understood.
std::function<double(double n)> parse_expression(const std::string& text);

}  // namespace esscher
