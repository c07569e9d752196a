#include "esscher/universal/free_energy.h"

#include <cmath>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/universal/universal.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

// E log(e^{s1} + e^{s2}) = E log(2 cosh(d/2)) with d ~ N(0, 2 tau^2), by the trapezoidal rule.
double two_scores(double tau) {
  const double deviation = std::numbers::sqrt2 * tau;
  double sum = 0;
  for (int i = -1200; i <= 1200; ++i) {
    const double g = 0.01 * i;
    const double half = 0.5 * std::abs(deviation * g);
    sum += std::exp(-0.5 * g * g) * (half + std::log1p(std::exp(-2 * half)));
  }
  return 0.01 * sum / std::sqrt(2 * std::numbers::pi);
}

TEST(FreeEnergy, TwoScoresByQuadrature) {
  for (const double tau : {0.05, 0.4, 1.0, 2.5, 6.0}) {
    EXPECT_TRUE(close(free_energy(2, tau).F, two_scores(tau), 1e-10)) << tau;
  }
}

// F' = M1 / tau, and the shrink is that of the universal functions.
TEST(FreeEnergy, ItsSlopeIsTheMeanScore) {
  for (const std::int64_t n : {2LL, 17LL, 240LL, 100000LL, 1000000000000LL}) {
    for (const double tau : {0.1, 0.7, 1.5, 3.0, 7.0, 30.0}) {
      const auto N = static_cast<double>(n);
      const double M1 = universal(n, tau).M1;
      const double h = 1e-3 * tau;
      const auto F = [&](double t) { return free_energy(N, t).F; };
      const double slope =
          (8 * (F(tau + h) - F(tau - h)) - (F(tau + 2 * h) - F(tau - 2 * h))) / (12 * h);
      EXPECT_TRUE(close(slope, M1 / tau, 1e-8)) << n << " " << tau;
      EXPECT_TRUE(close(free_energy(N, tau).shrink, M1 / (tau * tau), 1e-9)) << n << " " << tau;
    }
  }
}

TEST(FreeEnergy, OneScoreNoScoresAndVeryMany) {
  EXPECT_EQ(free_energy(1, 3.0).F, 0.0);
  EXPECT_EQ(free_energy(1, 3.0).shrink, 0.0);
  EXPECT_TRUE(close(free_energy(7, 0.0).F, std::log(7.0), 1e-15));
  EXPECT_TRUE(close(free_energy(7, 1e-9).F, std::log(7.0), 1e-12));
  // log n + tau^2/2 - (e^{tau^2} - 1)/(2n) for n far beyond e^{tau^2}.
  const double want = std::log(1e6) + 0.5 - 0.5 * std::expm1(1.0) / 1e6;
  EXPECT_TRUE(close(free_energy(1e6, 1.0).F, want, 1e-11));
}

TEST(FreeEnergy, TheTableAgrees) {
  for (double n = 1.3; n < 2e9; n *= 2.7) {
    for (double tau = 0.01; tau < 9; tau = 1.6 * tau + 0.013) {
      const FreeEnergy exact = free_energy(n, tau);
      const FreeEnergy fast = tabulated_free_energy(n, tau);
      EXPECT_NEAR(fast.F, exact.F, kTableError) << n << " " << tau;
      EXPECT_NEAR(fast.shrink, exact.shrink, kTableError) << n << " " << tau;
    }
  }
}

TEST(FreeEnergy, BadArgumentsAreNamed) {
  EXPECT_THROW(free_energy(0.5, 1.0), ArgumentError);
  EXPECT_THROW(free_energy(10, -1.0), ArgumentError);
  EXPECT_THROW(tabulated_free_energy(10, 601.0), ArgumentError);
}

}  // namespace
}  // namespace esscher
