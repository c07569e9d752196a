#include "esscher/universal/universal_table.h"

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/random/stream.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

// d/dx of M2c/tau^2 at x = tau^2 by a six-point difference: its own error is below 1e-10 here.
double slope_of_M2c_ratio(std::int64_t L, double x) {
  const double e = 0.012 * (1 + 0.05 * x);
  const auto f = [&](double y) { return universal(L, std::sqrt(y)).M2c_ratio; };
  return (45 * (f(x + e) - f(x - e)) - 9 * (f(x + 2 * e) - f(x - 2 * e)) +
          (f(x + 3 * e) - f(x - 3 * e))) /
         (60 * e);
}

TEST(UniversalTable, ValuesAndSlopesMatchTheFunctions) {
  const Stream stream(31);
  for (double L : {1.0, 2.0, 100.0, 1e6, 1e12, 1e15}) {
    const auto length = static_cast<std::int64_t>(L);
    const UniversalTable table(length, 12);
    for (int i = 0; i < 60; ++i) {
      const double tau = 12 * stream.uniform(static_cast<std::uint64_t>(i));
      const Universal4 u = universal4(length, tau);
      const UniversalTable::Point p = table.at(tau);
      EXPECT_TRUE(close(p.H, u.H, 1e-11)) << L << " " << tau;
      EXPECT_TRUE(close(p.M2c_ratio, u.M2c_ratio, 1e-11)) << L << " " << tau;
      EXPECT_TRUE(close(p.M1, u.M1, 1e-10, 1e-3)) << L << " " << tau;
      // E sum_l d^2 h / d s_l^2 / 2 = E[h - 4 sum omega^3 + 3 h^2].
      EXPECT_TRUE(close(p.dH, u.H - 4 * u.p3 + 3 * u.h2, 1e-9, u.H)) << L << " " << tau;
      EXPECT_TRUE(close(p.dM1, u.M1_ratio - tau * tau * p.dH, 1e-9, 1e-3)) << L << " " << tau;
      if (i < 8 && tau > 0.5) {
        EXPECT_TRUE(close(p.dM2c_ratio, slope_of_M2c_ratio(length, tau * tau), 1e-9, u.M2c_ratio))
            << L << " " << tau;
      }
    }
  }
}

TEST(UniversalTable, EndsOfTheRange) {
  const UniversalTable table(1000, 40);
  EXPECT_TRUE(close(table.at(0).H, 1e-3, 1e-12));
  EXPECT_TRUE(close(table.at(0).M2c_ratio, 1e-3, 1e-12));
  EXPECT_EQ(table.at(0).M1, 0);
  EXPECT_TRUE(close(table.at(0).dM1, 0.999, 1e-12));
  EXPECT_TRUE(close(table.at(40).M2c, universal(1000, 40).M2c, 1e-11));
  EXPECT_THROW((void)table.at(40.001), ArgumentError);
  EXPECT_THROW((void)table.at_tau2(-1), ArgumentError);
  EXPECT_THROW((void)table.at_tau2(std::nan("")), ArgumentError);
  EXPECT_THROW((void)table.order4_at_tau2(1), CapabilityError);
  EXPECT_THROW(UniversalTable(0, 1), ArgumentError);
  EXPECT_THROW(UniversalTable(10, 601), ArgumentError);
  EXPECT_TRUE(close(UniversalTable(50, 0).at(0).H, 0.02, 1e-12));
}

TEST(UniversalTable, ReachesAsFarAsTheFunctions) {
  const UniversalTable table(1000, kMaxTau);
  for (const double tau : {41.0, 63.9, 99.0, 180.5, 333.3, 600.0}) {
    const Universal want = universal(1000, tau);
    EXPECT_TRUE(close(table.at(tau).H, want.H, 1e-11)) << tau;
    EXPECT_TRUE(close(table.at(tau).M2c, want.M2c, 1e-11)) << tau;
    const double h = 0.01 * tau;
    const double slope =
        (universal(1000, tau - h).H - universal(1000, tau - 3 * h).H) / (4 * h * (tau - 2 * h));
    EXPECT_TRUE(close(table.at(tau - 2 * h).dH, slope, 2e-3)) << tau;
  }
}

TEST(UniversalTable, OrderFourFamily) {
  for (double L : {1.0, 3.0, 1e4, 1e12, 1e15}) {
    const auto length = static_cast<std::int64_t>(L);
    const UniversalTable table(length, 7, UniversalTable::Family::order4);
    // E h^2 freezes fastest near tau = 2.8 at these lengths.
    for (double tau : {0.0, 0.3, 1.0, 2.74, 2.89, 4.4, 7.0}) {
      const Universal4 want = universal4(length, tau), got = table.order4_at_tau2(tau * tau);
      EXPECT_TRUE(close(got.v2_ratio, want.v2_ratio, 1e-9)) << L << " " << tau;
      EXPECT_TRUE(close(got.q_ratio, want.q_ratio, 1e-9)) << L << " " << tau;
      EXPECT_TRUE(close(got.vh_ratio, want.vh_ratio, 1e-9, std::sqrt(want.v2_ratio * want.h2)))
          << L << " " << tau;
      EXPECT_TRUE(close(got.n2, want.n2, 1e-9)) << L << " " << tau;
      EXPECT_TRUE(close(got.h2, want.h2, 1e-9)) << L << " " << tau;
      EXPECT_TRUE(close(got.p3, want.p3, 1e-9)) << L << " " << tau;
    }
  }
}

}  // namespace
}  // namespace esscher
