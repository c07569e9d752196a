#include "esscher/universal/free_energy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>
#include <shared_mutex>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/universal/token_moments.h"
#include "esscher/universal/universal.h"

namespace esscher {
namespace {

// The u where t Z is of order 1, as in universal.cc: the bulk, or the largest score.
double typical_u(double n, double tau) {
  const double frozen = std::sqrt(2 * std::log(n));
  return tau < frozen ? -std::log(n) - 0.5 * tau * tau : -tau * frozen;
}

struct Terms {
  double difference;  // of the step and phi^n
  double pairs;       // integrand of shrink, n (n-1) G1^2 phi^{n-2}
};

// x = (u - u0) / sigma. On the left both functions are near 1 and their complements are subtracted.
Terms terms(double n, double x, const TokenMoments::Basic& G) {
  const double step = 0.5 * std::erfc(std::abs(x) / std::numbers::sqrt2);
  if (!(G.psi < 1)) return {.difference = x < 0 ? 1 - step : step, .pairs = 0};
  const double log_phi = std::log1p(-G.psi);
  return {.difference = x < 0 ? -step - std::expm1(n * log_phi) : step - std::exp(n * log_phi),
          // n^2 alone would overflow beyond 1e154 tokens.
          .pairs = (n * G.G1) * ((n - 1) * G.G1) * std::exp((n - 2) * log_phi)};
}

// Sums outwards from the middle until both integrands are negligible.
FreeEnergy integrate(double n, double tau) {
  const double u0 = typical_u(n, tau);
  const long stride = std::max(1L, std::lround(std::floor(tau / std::sqrt(2 * std::log(n) + 4))));
  const auto sigma = static_cast<double>(stride);
  const double du = sigma * TokenMoments::kStep;
  const long start = std::lround(u0 / du);
  const long limit = static_cast<long>((20 * tau + 150) / du);
  const TokenMoments token(tau, tau, 2, static_cast<double>(start - limit) * du);
  double difference = 0;
  double pairs = 0;
  const auto add = [&](long i) {
    const double x = (static_cast<double>(i) * du - u0) / sigma;
    const Terms t = terms(n, x, token.basic(i * stride));
    difference += t.difference;
    pairs += t.pairs;
    return std::abs(x) < 6 || std::abs(t.difference) > 1e-17 || t.pairs > 1e-17 * pairs;
  };
  for (long i = 0; i <= limit && add(start + i); ++i) {
  }
  for (long i = 1; i <= limit && add(start - i); ++i) {
  }
  return {.F = du * difference - u0 - std::numbers::egamma, .shrink = du * pairs};
}

// Chebyshev panels of (log n, tau). F - log n = tau^2 f, and f and shrink are smooth in tau^2.
constexpr int kNodesX = 12;         // in log n
constexpr int kNodesY = 14;         // in tau
constexpr double kWidthX = 2.0794;  // about three octaves
constexpr double kWidthY = 1.0;

double node(int k, int count) { return std::cos(std::numbers::pi * (k + 0.5) / count); }

struct Panel {
  std::array<std::array<double, kNodesY>, kNodesX> excess{};  // (F - log n) / tau^2
  std::array<std::array<double, kNodesY>, kNodesX> shrink{};
};

Panel make_panel(int px, int py) {
  Panel panel;
  for (int i = 0; i < kNodesX; ++i) {
    const double x = kWidthX * (px + 0.5 * (1 + node(i, kNodesX)));
    for (int j = 0; j < kNodesY; ++j) {
      const double tau = kWidthY * (py + 0.5 * (1 + node(j, kNodesY)));
      const FreeEnergy exact = integrate(std::exp(x), tau);
      panel.excess[i][j] = (exact.F - x) / (tau * tau);
      panel.shrink[i][j] = exact.shrink;
    }
  }
  return panel;
}

// Values of the Lagrange polynomials of the Chebyshev nodes at x in [-1, 1], barycentric.
template <int N>
std::array<double, N> weights_at(double x) {
  std::array<double, N> w{};
  double total = 0;
  for (int k = 0; k < N; ++k) {
    const double gap = x - node(k, N);
    if (gap == 0) {
      w.fill(0);
      w[k] = 1;
      return w;
    }
    const double sign = k % 2 == 0 ? 1.0 : -1.0;
    w[k] = sign * std::sin(std::numbers::pi * (k + 0.5) / N) / gap;
    total += w[k];
  }
  for (double& one : w) one /= total;
  return w;
}

const Panel& panel_of(int px, int py) {
  static std::shared_mutex mutex;
  static std::map<std::pair<int, int>, std::unique_ptr<const Panel>> panels;
  {
    const std::shared_lock lock(mutex);
    const auto found = panels.find({px, py});
    if (found != panels.end()) return *found->second;
  }
  auto made = std::make_unique<const Panel>(make_panel(px, py));
  const std::unique_lock lock(mutex);
  return *panels.try_emplace({px, py}, std::move(made)).first->second;
}

}  // namespace

FreeEnergy free_energy(double n, double tau) {
  if (!(n >= 1 && std::isfinite(n))) {
    throw_argument("free_energy", "n", to_text(n), "a number >= 1");
  }
  if (!(tau >= 0 && tau <= kMaxTau)) {
    throw_argument("free_energy", "tau", to_text(tau), "a number in [0, " + to_text(kMaxTau) + "]");
  }
  if (n == 1) return {.F = 0, .shrink = 0};
  if (tau == 0) return {.F = std::log(n), .shrink = 1 - 1 / n};
  return integrate(n, tau);
}

FreeEnergy tabulated_free_energy(double n, double tau) {
  if (!(n > 1 && n < kTableLength && tau > 0 && tau < kTableTau)) return free_energy(n, tau);
  const double x = std::log(n);
  const int px = static_cast<int>(x / kWidthX);
  const int py = static_cast<int>(tau / kWidthY);
  const Panel& panel = panel_of(px, py);
  const auto along_x = weights_at<kNodesX>(2 * (x / kWidthX - px) - 1);
  const auto along_y = weights_at<kNodesY>(2 * (tau / kWidthY - py) - 1);
  double excess = 0;
  double shrink = 0;
  for (int i = 0; i < kNodesX; ++i) {
    for (int j = 0; j < kNodesY; ++j) {
      const double w = along_x[i] * along_y[j];
      excess += w * panel.excess[i][j];
      shrink += w * panel.shrink[i][j];
    }
  }
  return {.F = x + tau * tau * excess, .shrink = shrink};
}

}  // namespace esscher
