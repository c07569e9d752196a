#include "esscher/heads/window_control.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/universal/token_moments.h"

namespace esscher {
namespace {

using Six = std::array<double, 6>;

// The six integrands at u, with v = B e^u.
Six integrands(std::int64_t n, double v, const TokenMoments::Table& G) {
  const Survival survival(n, G(0, 0));
  const double window = std::exp(-v);
  const double all = std::exp(static_cast<double>(n) * std::log1p(-std::min(G(0, 0), 1.0)));
  return {v * window * all,
          v * v * window * all,
          window * G(1, 1) * survival.power[1],
          v * window * G(1, 1) * survival.power[1],
          window * (G(2, 2) * survival.power[1] + G(1, 1) * G(1, 1) * survival.power[2]),
          window * G(2, 0) * survival.power[1]};
}

}  // namespace

WindowExpectations window_expectations(std::int64_t n, double tau, double log_mass) {
  if (n < 1) throw_argument("window_expectations", "n", std::to_string(n), "at least 1");
  if (!(tau > 0 && tau <= kMaxMixtureTau)) {
    throw_argument("window_expectations", "tau", to_text(tau),
                   "a number in (0, " + to_text(kMaxMixtureTau) + "]");
  }
  const double N = std::log(static_cast<double>(n));
  const double frozen = std::sqrt(2 * N);
  const double middle = std::min(-log_mass, tau < frozen ? -N - 0.5 * tau * tau : -tau * frozen);
  const double du = TokenMoments::kStep;
  const long start = std::lround(middle / du);
  const long limit = static_cast<long>((20 * tau + 150) / du);
  const TokenMoments token(tau, 0, 2, static_cast<double>(start - limit) * du);
  Six sums{};
  Six sizes{};
  const auto add = [&](long i) {
    const double v = std::exp(static_cast<double>(i) * du + log_mass);
    const Six terms = integrands(n, v, token.all(i));
    bool matters = false;
    for (std::size_t j = 0; j < terms.size(); ++j) {
      sums[j] += terms[j];
      sizes[j] += std::abs(terms[j]);
      matters = matters || std::abs(terms[j]) > 1e-16 * sizes[j];
    }
    return matters;
  };
  for (long i = 0; i <= limit && add(start + i); ++i) {
  }
  for (long i = 1; i <= limit && add(start - i); ++i) {
  }
  return {.exact = du * sums[0],
          .exact2 = du * sums[1],
          .score = du * tau * sums[2],
          .exact_score = du * tau * sums[3],
          .score2 = du * tau * tau * sums[4],
          .h = du * sums[5]};
}

std::optional<WindowExpectations> window_expectations(const WindowParts& parts) {
  if (!(parts.count > 0) || parts.scores.weights.size() != 1) return std::nullopt;
  const double tau = std::sqrt(parts.scores.tau2(0));
  const double log_mass = parts.exact.log_mass - parts.scores.mu(0);
  if (!(tau > 0 && tau <= kMaxMixtureTau && std::isfinite(log_mass))) return std::nullopt;
  return window_expectations(std::llround(parts.count), tau, log_mass);
}

double window_control(const WindowParts& parts, const WindowExpectations& expected,
                      const VectorView& surrogate) {
  const Vector mean = parts.scores.mean.row(0);
  const Vector cross = parts.scores.cross.row(0);
  const double tau2 = parts.scores.tau2(0);
  const Vector e = parts.exact.value - mean;
  const Vector g = cross / tau2;
  const Vector d = surrogate - mean;
  const double rest = std::max(0.0, parts.scores.variance(0) - cross.squaredNorm() / tau2);
  const double square = d.squaredNorm() + e.squaredNorm() * expected.exact2 +
                        g.squaredNorm() * expected.score2 - 2 * d.dot(e) * expected.exact -
                        2 * d.dot(g) * expected.score + 2 * e.dot(g) * expected.exact_score +
                        rest * expected.h;
  return std::max(0.0, square);
}

}  // namespace esscher
