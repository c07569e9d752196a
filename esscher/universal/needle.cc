#include "esscher/universal/needle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/base/error.h"
#include "esscher/universal/free_energy.h"
#include "esscher/universal/token_moments.h"
#include "esscher/universal/universal.h"

namespace esscher {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void check(double n, double tau, double score) {
  if (!(n >= 0 && n < kInfinity)) throw_argument("needle", "n", to_text(n), "a number >= 0");
  if (!(tau >= 0 && tau <= kMaxTau)) {
    throw_argument("needle", "tau", to_text(tau), "a number in [0, " + to_text(kMaxTau) + "]");
  }
  if (std::isnan(score)) throw_argument("needle", "score", "nan", "a number");
}

}  // namespace

// phi^n falls where the n scores are met, and the density of the given token peaks at u = -c. The
// integrand is log-concave, and its maximum lies between the two. Nodes go outwards from there.
double needle_weight(double n, double tau, double score) {
  check(n, tau, score);
  if (n == 0 || score == kInfinity) return 1;
  if (score == -kInfinity) return 0;
  constexpr double kStep = TokenMoments::kStep, kEnd = 1e-18;
  const double spread = std::sqrt(2 * std::log(std::max(n, 1.0)));
  const double others = std::max(std::log(n) + 0.5 * tau * tau, tau * (spread + 40));
  const double left = std::min(-score, -others) - 60;
  const TokenMoments token(tau, tau, 0, left - 1);
  const auto log_integrand = [&](long i) {
    const double u = kStep * static_cast<double>(i), psi = token.basic(i).psi;
    return score + u - std::exp(score + u) + n * std::log1p(-std::min(psi, 1.0));
  };
  long low = std::lround(left / kStep), high = std::lround((-score + 8) / kStep);
  while (high - low > 2) {  // the maximum of a concave function
    const long i = low + (high - low) / 2;
    if (log_integrand(i) < log_integrand(i + 1)) {
      low = i;
    } else {
      high = i + 1;
    }
  }
  const long top = low + 1;
  const double peak = log_integrand(top);
  if (!(peak > -700)) return 0;
  double sum = 0;
  for (long i = top;; ++i) {
    const double term = std::exp(log_integrand(i) - peak);
    sum += term;
    if (term < kEnd) break;
  }
  for (long i = top - 1;; --i) {
    const double term = std::exp(log_integrand(i) - peak);
    sum += term;
    if (term < kEnd) break;
  }
  return std::min(1.0, kStep * sum * std::exp(peak));
}

double weight_entropy(double n, double tau) {
  const FreeEnergy energy = free_energy(n, tau);
  return std::max(0.0, energy.F - tau * tau * energy.shrink);
}

}  // namespace esscher
