#include "esscher/concentration/regime.h"

#include <cmath>
#include <limits>
#include <utility>

#include "esscher/concentration/constant.h"

namespace esscher {

Regime regime_of(double lambda, double constant) {
  if (!std::isnan(lambda)) return lambda < 0.5 ? Regime::inverse : Regime::slow;
  return std::isfinite(constant) ? Regime::inverse_at_queries : Regime::slower_somewhere;
}

std::string_view regime_text(Regime regime) {
  switch (regime) {
    case Regime::inverse:
      return "lambda < 1/2: D(L) ~ constant/L, with the constant in closed form";
    case Regime::slow:
      return "lambda >= 1/2: rare queries see a frozen softmax; predicted D(L) ~ L^-gamma up to "
             "logarithms (a heuristic, not a theorem)";
    case Regime::inverse_at_queries:
      return "D(L) ~ constant/L at these queries (delta method, averaged over them)";
    case Regime::slower_somewhere:
      return "Lambda(2a) is infinite at some query: slower than 1/L there";
  }
  return "";
}

RegimeReport regime_report(double lambda, std::vector<double> constants) {
  RegimeReport report;
  report.regime = regime_of(lambda, constants.at(0));
  report.lambda = lambda;
  if (!std::isnan(lambda)) {
    report.gamma = predicted_exponent(lambda);
  } else if (report.regime == Regime::slower_somewhere) {
    report.gamma = std::numeric_limits<double>::quiet_NaN();
  }
  report.constants = std::move(constants);
  report.text = regime_text(report.regime);
  return report;
}

}  // namespace esscher
