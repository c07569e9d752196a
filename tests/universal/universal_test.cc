#include "esscher/universal/universal.h"

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "esscher/base/error.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

// Sums over tokens of one prompt, straight from the definitions.
std::array<double, 9> functionals(const std::vector<double>& s, double tau) {
  double top = s[0], Z = 0;
  for (double x : s) top = std::max(top, x);
  for (double x : s) Z += std::exp(x - top);
  double S = 0, v = 0, h = 0, q = 0, p3 = 0;
  for (double x : s) S += std::exp(x - top) / Z * x;
  for (double x : s) {
    const double w = std::exp(x - top) / Z;
    v += w * (x - S) * (x - S);
    h += w * w;
    q += w * w * (x - S) * (x - S);
    p3 += w * w * w;
  }
  const double t2 = tau * tau, dv = v / t2 - 1;
  return {S / t2, (S - t2) * (S - t2) / t2, h, dv, dv * dv, q / t2, dv * h, h * h, p3};
}

// E over L iid N(0,tau^2) scores on a product grid, L <= 3: trapezoid, errors far below 1e-12.
std::array<double, 9> brute_force(int L, double tau) {
  const double step = L == 3 ? 0.14 : 0.05;
  const int half = static_cast<int>(9.0 / step);
  std::array<double, 9> total{};
  std::vector<int> index(L, -half);
  std::vector<double> s(L);
  for (;;) {
    double weight = 1;
    for (int l = 0; l < L; ++l) {
      const double g = index[l] * step;
      s[l] = tau * g;
      weight *= step * std::exp(-0.5 * g * g) / std::sqrt(2 * std::numbers::pi);
    }
    const auto values = functionals(s, tau);
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += weight * values[i];
    int l = 0;
    while (l < L && ++index[l] > half) index[l++] = -half;
    if (l == L) return total;
  }
}

std::array<double, 9> as_array(const Universal4& u) {
  return {u.M1_ratio, u.M2c_ratio, u.H, u.v1_ratio, u.v2_ratio, u.q_ratio, u.vh_ratio, u.h2, u.p3};
}

TEST(Universal, CheckValues) {
  EXPECT_TRUE(close(universal(100, 1).M1, 0.97446152, 1e-8));
  EXPECT_TRUE(close(universal(100, 1).H, 0.02553848, 2e-7));
  EXPECT_TRUE(close(universal(1000, 1.5).M1, 2.23065959, 1e-8));
  EXPECT_TRUE(close(universal(1000, 1.5).H, 0.00859574, 1e-6));
  EXPECT_TRUE(close(universal(1000000, 1).M1, 0.9999972817, 1e-10));
  EXPECT_TRUE(close(universal(1000000, 1).H, 2.718261107e-6, 1e-9));
  EXPECT_TRUE(close(1e6 * universal(1000000, 1).M2c, 5.436446, 1e-7));
  EXPECT_TRUE(close(universal(1000000000000, 3).M1, 8.99999992708, 1e-12));
}

TEST(Universal, OneTokenHasClosedForm) {
  for (double tau : {0.0, 1e-8, 0.1, 0.25, 1.0, 7.0, 40.0, 600.0}) {
    const Universal4 u = universal4(1, tau);
    EXPECT_EQ(u.M1, 0);
    EXPECT_TRUE(close(u.M2c_ratio, 1 + tau * tau, 1e-13)) << tau;
    EXPECT_TRUE(close(u.H, 1, 1e-14)) << tau;
    EXPECT_TRUE(close(u.v1_ratio, -1, 1e-11)) << tau;
    EXPECT_TRUE(close(u.v2_ratio, 1, 1e-11)) << tau;
    EXPECT_TRUE(close(u.vh_ratio, -1, 1e-11)) << tau;
    EXPECT_EQ(u.q_ratio, 0);
    EXPECT_EQ(u.n2, 0);
  }
}

TEST(Universal, TwoAndThreeTokensByBruteForce) {
  for (int L : {2, 3}) {
    for (double tau : {0.05, 0.3, 1.0, 2.0}) {
      const auto want = brute_force(L, tau);
      const auto got = as_array(universal4(L, tau));
      for (std::size_t i = 0; i < want.size(); ++i) {
        EXPECT_TRUE(close(got[i], want[i], 1e-11)) << "L " << L << " tau " << tau << " item " << i;
      }
    }
  }
}

TEST(Universal, ZeroTemperatureLimitIsUniformWeights) {
  for (std::int64_t L : {1L, 2L, 10L, 1000000L, 1000000000000000L}) {
    for (double tau : {0.0, 1e-9}) {
      const Universal4 u = universal4(L, tau);
      const double n = static_cast<double>(L);
      EXPECT_TRUE(close(u.H, 1 / n, 1e-13));
      EXPECT_TRUE(close(u.M1_ratio, (n - 1) / n, 1e-13));
      EXPECT_TRUE(close(u.M2c_ratio, 1 / n, 1e-13));
      // Sample variance with divisor L: E(v-1)^2 = (2(n-1) + 1)/n^2.
      EXPECT_TRUE(close(u.v2_ratio, (2 * n - 1) / (n * n), 1e-12));
      EXPECT_TRUE(close(u.q_ratio, (n - 1) / (n * n), 1e-12));
      EXPECT_TRUE(close(u.n2, (n - 1) / (n * n), 1e-12));
    }
  }
}

// Gaussian partial integration: M2c = tau^2 E h + tau^4 (E h + 6 E h^2 - 6 E sum omega^3).
TEST(Universal, PartialIntegrationIdentityEverywhere) {
  for (double L : {1.0, 2.0, 5.0, 100.0, 1e6, 1e9, 1e15, 9e18}) {
    for (double tau : {0.0, 1e-3, 0.2, 0.25, 1.0, 3.0, 6.0, 9.0, 15.0, 40.0}) {
      const Universal4 u = universal4(static_cast<std::int64_t>(L), tau);
      EXPECT_TRUE(close(u.M2c_ratio, u.H + tau * tau * (u.H + 6 * u.h2 - 6 * u.p3), 1e-12, 1e-300))
          << L << " " << tau;
      EXPECT_LT(u.error, 1e-14);
      EXPECT_TRUE(close(u.n2, u.H - 2 * u.p3 + u.h2, 1e-12, u.H));
    }
  }
}

TEST(Universal, LongPromptsFollowTheDeltaMethod) {
  for (double tau : {0.1, 0.5, 1.0, 2.0}) {
    const double t2 = tau * tau;
    EXPECT_TRUE(
        close(1e15 * universal(1000000000000000, tau).M2c, t2 * (1 + t2) * std::exp(t2), 1e-9));
    EXPECT_TRUE(close(1e15 * universal(1000000000000000, tau).H, std::exp(t2), 1e-9));
  }
}

TEST(Universal, RefusesBadArguments) {
  EXPECT_THROW(universal(0, 1), ArgumentError);
  EXPECT_THROW(universal(10, -1), ArgumentError);
  EXPECT_THROW(universal(10, std::nan("")), ArgumentError);
  EXPECT_THROW(universal4(10, 601), ArgumentError);
}

TEST(Universal, TheMeanOfTheVarianceAloneIsThatOfOrderFour) {
  for (const std::int64_t L : {1, 2, 30, 4096, 1000000000}) {
    for (const double tau : {0.0, 0.01, 0.2, 1.0, 3.0, 15.0, 100.0}) {
      const Universal3 got = universal3(L, tau);
      const Universal4 want = universal4(L, tau);
      EXPECT_TRUE(testing::close(got.H, want.H, 1e-14)) << L << " " << tau;
      EXPECT_TRUE(testing::close(got.M2c, want.M2c, 1e-14)) << L << " " << tau;
      EXPECT_TRUE(testing::close(got.p3, want.p3, 1e-12)) << L << " " << tau;
      EXPECT_TRUE(testing::close(got.v1_ratio, want.v1_ratio, 1e-12, 1 + tau * tau * want.H))
          << L << " " << tau;
    }
  }
  EXPECT_THROW(universal3(10, 601), ArgumentError);
}

}  // namespace
}  // namespace esscher
