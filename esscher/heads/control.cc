#include "esscher/heads/control.h"

#include <algorithm>
#include <cmath>

#include "esscher/estimate/smallest_length.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/universal/universal.h"

namespace esscher {
namespace {

constexpr std::int64_t kLongestPrompt = 1'000'000'000'000'000;

}  // namespace

double Control::relative() const { return signal2 > 0 ? std::sqrt(error2 / signal2) : 0.0; }

Control gaussian_control(std::int64_t n, const ScoreMoments& query) {
  if (n < 2 || !(query.tau2 > 0)) return {};
  const double tau2 = query.tau2;
  const auto N = static_cast<double>(n);
  const double tau = std::min(std::sqrt(tau2), kMaxTau);
  const double beyond = std::sqrt(tau2) / tau;  // 1 within reach
  const Universal3 u = universal3(n, tau);
  const double M1 = beyond * u.M1;
  const double S2 = beyond * beyond * (u.M2c + 2 * tau * tau * u.M1 - std::pow(tau, 4));
  const double v = beyond * tau * tau * (1 + u.v1_ratio);
  const double S_vhat = tau2 * M1 * (1 - 1 / N) + tau2 * (M1 + v) / N;
  const double vhat2 = tau2 * tau2 * (1 - 1 / (N * N));
  const double along = S2 - tau2 / N + vhat2 - 2 * S_vhat;
  const double across = u.H - 2 * (1 + M1) / N + (1 + tau2 * (1 - 1 / N)) / N;
  const double gain = query.signal2 / (tau2 * tau2);
  const double rest = std::max(0.0, query.value_var - query.signal2 / tau2);
  return {.error2 = std::max(0.0, gain * along + rest * across),
          .signal2 = std::max(0.0, gain * (S2 - tau2 / N) + rest * (u.H - 1 / N))};
}

Length linear_from(const ScoreMoments& query, double tolerance) {
  const auto error = [&](std::int64_t L) { return gaussian_control(L, query).relative(); };
  const SmallestLength found = smallest_length(error, tolerance,
                                               {.from = 2,
                                                .to = kLongestPrompt,
                                                .growth = 4,
                                                .narrowing = Narrowing::halves,
                                                .resolution = 1000});
  return found.length ? Length(*found.length) : Length::infinity();
}

double mixture_control(const ScoreMixture& scores, double n) {
  const bool reached = (scores.tau2.array() <= kMaxMixtureTau * kMaxMixtureTau).all();
  if (!reached || !scores.mu.allFinite() || !(scores.weights.sum() > 0)) return kNoControl;
  return std::sqrt(mean_square_error(scores, static_cast<std::int64_t>(n)));
}

}  // namespace esscher
