// Which regime of decay is expected, and in which words.
//
// lambda = lambda_max(Sz^{1/2} U'GU Sz^{1/2}) for Gaussian tokens and queries. Below 1/2 D(L) ~
// constant/L (a theorem), above D(L) ~ L^-gamma (a prediction, see constant.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/enum_names.h"

namespace esscher {

enum class Regime {
  inverse,             // Gaussian tokens and queries, lambda < 1/2
  slow,                // Gaussian tokens and queries, lambda >= 1/2
  inverse_at_queries,  // other laws, with a finite constant at every query
  slower_somewhere,    // other laws, Lambda(2a) infinite at some query
};

constexpr auto enum_names(Regime) {
  return EnumNames<Regime, 4>{"regime",
                              {{{Regime::inverse, "inverse"},
                                {Regime::slow, "slow"},
                                {Regime::inverse_at_queries, "inverse_at_queries"},
                                {Regime::slower_somewhere, "slower_somewhere"}}}};
}

struct RegimeReport {
  Regime regime = Regime::inverse;
  double lambda = 0;              // NaN unless tokens and queries are Gaussian
  double gamma = 1;               // predicted exponent; NaN where there is no prediction
  std::vector<double> constants;  // per metric; infinity where there is none
  std::string text;
};

// The regime by lambda, or by the constant of the first metric where lambda is NaN.
Regime regime_of(double lambda, double constant);
// One sentence without its full stop.
std::string_view regime_text(Regime regime);
// All of it; constants is not empty.
RegimeReport regime_report(double lambda, std::vector<double> constants);

}  // namespace esscher
