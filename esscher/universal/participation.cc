#include "esscher/universal/participation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/universal/token_moments.h"
#include "esscher/universal/universal.h"

namespace esscher {
namespace {

// Below this a product of a tabulated y^2 e^-y and a Gaussian has lost terms to underflow.
constexpr double kSmallest = 1e-270;

// log G_2(u), G_2 = int e^{2v - e^v} N(v; u, tau^2) dv, v = log y: the logarithm of the integrand is
// concave, so its terms fall on both sides of the largest one.
double log_second_moment(double u, double tau) {
  const double variance = tau * tau;
  double low = std::min(u, 0.0) - 1, high = std::max(u + 2 * variance, 1.0);
  const auto slope = [&](double v) { return 2 - std::exp(v) - (v - u) / variance; };
  high = std::min(high, 1.0);
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (slope(middle) > 0 ? low : high) = middle;
  }
  const double peak = 0.5 * (low + high), step = std::min(TokenMoments::kStep, 0.3 * tau);
  const auto exponent = [&](double v) {
    return 2 * v - std::exp(v) - 0.5 * (v - u) * (v - u) / variance;
  };
  const double top = exponent(peak);
  double sum = 1;
  for (const double side : {-step, step}) {
    for (long i = 1;; ++i) {
      const double term = std::exp(exponent(peak + static_cast<double>(i) * side) - top);
      sum += term;
      if (term < 1e-18) break;
    }
  }
  return top + std::log(sum * step / (tau * std::sqrt(2 * std::numbers::pi)));
}

}  // namespace

// The integrand is log-concave and peaks where t sum e^s is of order 1, which is the bulk or the
// largest score. Nodes go outwards from there, wider where the largest score decides.
double mean_weight_square(double n, double tau) {
  if (!(n >= 1 && n <= 1e300)) {
    throw_argument("mean_weight_square", "n", to_text(n), "a number in [1, 1e300]");
  }
  if (!(tau >= 0 && tau <= kMaxTau)) {
    throw_argument("mean_weight_square", "tau", to_text(tau),
                   "a number in [0, " + to_text(kMaxTau) + "]");
  }
  if (tau == 0) return 1 / n;
  const double log_n = std::log(n), frozen = std::sqrt(2 * log_n);
  const double middle = tau < frozen ? -log_n - 0.5 * tau * tau : -tau * frozen;
  const long stride = std::max(1L, std::lround(std::floor(tau / std::sqrt(2 * log_n + 4))));
  const double du = static_cast<double>(stride) * TokenMoments::kStep;
  const long start = std::lround(middle / du);
  const long limit = static_cast<long>((20 * tau + 150) / du);
  const TokenMoments token(tau, tau, 2, static_cast<double>(start - limit) * du);
  double sum = 0;
  const auto add = [&](long i) {
    const TokenMoments::Basic G = token.basic(i * stride);
    const double power = n == 1 ? 0 : (n - 1) * std::log1p(-std::min(G.psi, 1.0));
    const double term =
        G.G2 > kSmallest
            ? G.G2 * std::exp(log_n + power)
            : std::exp(log_second_moment(static_cast<double>(i) * du, tau) + log_n + power);
    sum += term;
    return sum == 0 || term > 1e-18 * sum;
  };
  for (long i = 0; i <= limit && add(start + i); ++i) {
  }
  for (long i = 1; i <= limit && add(start - i); ++i) {
  }
  return std::min(1.0, sum * du);
}

}  // namespace esscher
