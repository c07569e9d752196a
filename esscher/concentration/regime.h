// Which regime of decay is expected, and in which words.
//
// lambda = lambda_max(Sz^{1/2} U'GU Sz^{1/2}) for Gaussian tokens and queries. Below 1/2 D(L) ~
// constant/L (a theorem), above D(L) ~ L^-gamma (a prediction, see constant.h).
//
// For other laws only the growth far out matters (measure/tail_growth.h): the constant of a query
// grows like e^{a'Ga} with the sharpest form G of the tokens, so lambda is the largest over the
// forms G of the tokens and Sz of the queries. Its average over queries is infinite from
// lambda = 1/2 on, however finite an average over drawn queries looks: there is no constant.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/concentration/problem.h"

namespace esscher {

enum class Regime {
  inverse,             // Gaussian tokens and queries, lambda < 1/2
  slow,                // lambda >= 1/2
  inverse_at_queries,  // other laws, with a finite constant
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
  double lambda = 0;              // NaN unless tokens and queries have Gaussian tails
  double gamma = 1;               // predicted exponent; NaN where there is no prediction
  std::vector<double> constants;  // per metric; infinity where there is none
  // The first constant over that of independent tokens; absent where tokens are independent.
  std::optional<double> kappa = {};
  std::string text;
};

// What the tails of tokens and queries say about the average of a constant over queries.
struct QueryAverage {
  double lambda = 0;      // NaN where tails are bounded or unknown; infinite queries of heavy tails
  bool infinite = false;  // the average of the constant is infinite
  bool outside = false;   // Lambda(Uz) itself is infinite at some queries
};
QueryAverage query_average(const Problem& problem);

// Adds kappa, and what it means, where tokens depend on each other. alone is the first constant of
// independent tokens.
RegimeReport with_dependence(RegimeReport report, double alone);

// The regime by lambda, or by the constant of the first metric where lambda is NaN or below 1/2
// without a closed form of the constant.
Regime regime_of(double lambda, double constant, bool closed_form = true);
// One sentence without its full stop.
std::string_view regime_text(Regime regime);
// All of it; constants is not empty.
RegimeReport regime_report(double lambda, std::vector<double> constants, bool closed_form = true);

}  // namespace esscher
