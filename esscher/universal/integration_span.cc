#include "esscher/universal/integration_span.h"

#include <algorithm>
#include <cmath>

namespace esscher {

// E[y e^-y] <= E y^theta, 0 <= theta <= 1. With v = -w the best theta makes this e^{-w^2/2tau^2}
// for w <= tau^2 and e^{-w + tau^2/2} above. w is where it is e^-l.
double first_order_reach(double tau, double l) {
  const double w = tau * std::sqrt(2 * l);
  return w < tau * tau ? w : l + tau * tau / 2;
}

namespace {

// E[y(1 - e^-y)] <= E y^{1+theta}, 0 <= theta <= 1. With v = -w the best theta makes this
// e^{-w^2/2tau^2} for tau^2 <= w <= 2tau^2, e^{-w + tau^2/2} below and e^{-2w + 2tau^2} above.
double second_order_reach(double tau, double l) {
  const double w = tau * std::sqrt(2 * l);
  if (w < tau * tau) return l + tau * tau / 2;
  return w < 2 * tau * tau ? w : l / 2 + tau * tau;
}

}  // namespace

IntegrationSpan integration_span(const VectorView& weights, const VectorView& mu, double tau,
                                 std::int64_t L, int order) {
  const double Ld = static_cast<double>(L);
  const double l = order == 2 ? 36 + 2 * std::log(Ld) : 27 + std::log(Ld);
  const double rest = std::max(1.0, Ld - 2);
  IntegrationSpan out{HUGE_VAL, -mu.minCoeff() + tau * std::sqrt(80 / rest) + 4};
  for (Index k = 0; k < mu.size(); ++k) {
    const double own = std::max(1.0, l + std::log(weights[k]));
    const double reach = order == 2 ? second_order_reach(tau, own) : first_order_reach(tau, own);
    out.left = std::min(out.left, -mu[k] - reach);
    const double odds = weights[k] * Ld / 200;
    if (odds <= 1 || L < 4) continue;
    const double deviations = std::max(0.0, std::sqrt(2 * std::log(odds)) - 1.3);
    out.right = std::min(out.right, -mu[k] - tau * deviations + 1);
  }
  return out;
}

}  // namespace esscher
