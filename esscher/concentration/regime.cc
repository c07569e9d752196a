#include "esscher/concentration/regime.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "esscher/base/number_text.h"
#include "esscher/concentration/constant.h"
#include "esscher/measure/tail_growth.h"

namespace esscher {

namespace {

// lambda_max(H^{1/2} U'GU H^{1/2}) of PSD matrices; G = F F'.
double sharpness(const Matrix& G, const Matrix& U, const Matrix& H) {
  if (G.isZero(0) || H.isZero(0)) return 0;
  const Matrix FU = psd_factor("regime", "covariance of the tokens", G).transpose() * U;
  const Matrix form = FU * H * FU.transpose();
  return max_eigenvalue(0.5 * (form + form.transpose()));
}

}  // namespace

QueryAverage query_average(const Problem& problem) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (!problem.nu) return {.lambda = kUnknown};
  const auto mu = tail_growth(problem.mu), nu = tail_growth(*problem.nu);
  if (!mu || !nu || nu->bounded() || mu->bounded()) return {.lambda = kUnknown};
  const Matrix& U = problem.attention.U();
  double lambda = 0;
  bool outside = sharpness(mu->wild, U, nu->wild) > 0;
  for (const Matrix& H : nu->forms) {
    outside = outside || sharpness(mu->wild, U, H) > 0;
    for (const Matrix& G : mu->forms) lambda = std::max(lambda, sharpness(G, U, H));
  }
  for (const Matrix& G : mu->forms) {
    if (sharpness(G, U, nu->wild) > 0) lambda = std::numeric_limits<double>::infinity();
  }
  if (outside) return {.lambda = kUnknown, .infinite = true, .outside = true};
  return {.lambda = lambda, .infinite = lambda >= 0.5};
}

Regime regime_of(double lambda, double constant, bool closed_form) {
  if (lambda >= 0.5) return Regime::slow;
  if (!std::isnan(lambda) && closed_form) return Regime::inverse;
  return std::isfinite(constant) ? Regime::inverse_at_queries : Regime::slower_somewhere;
}

std::string_view regime_text(Regime regime) {
  switch (regime) {
    case Regime::inverse:
      return "lambda < 1/2: D(L) ~ constant/L, with the constant in closed form";
    case Regime::slow:
      return "lambda >= 1/2: rare queries see a frozen softmax; predicted D(L) ~ L^-gamma up to "
             "logarithms (a heuristic, not a theorem); no constant, because its average over "
             "queries "
             "is infinite";
    case Regime::inverse_at_queries:
      return "D(L) ~ constant/L at these queries (delta method, averaged over them)";
    case Regime::slower_somewhere:
      return "Lambda(2a) is infinite at some query: slower than 1/L there; no constant";
  }
  return "";
}

RegimeReport regime_report(double lambda, std::vector<double> constants, bool closed_form) {
  RegimeReport report;
  report.regime = regime_of(lambda, constants.at(0), closed_form);
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

RegimeReport with_dependence(RegimeReport report, double alone) {
  report.text += "; tokens depend on each other, so D(L) of finite prompts is simulated";
  const double ratio = report.constants.front() / alone;
  if (!std::isfinite(ratio)) return report;
  report.kappa = ratio;
  report.text += ", and L of them are worth L/kappa independent ones in the long run, kappa = " +
                 brief(ratio, 4);
  return report;
}

}  // namespace esscher
