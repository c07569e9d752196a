#include "esscher/risk/node_error.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/universal/universal.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

// E (r'zbar - y)^2 by the moments of S, which do not cancel.
double error_of(const Universal& u, double tau, double g, double q, double y) {
  const double tau2 = tau * tau, square = u.M2c + 2 * tau2 * u.M1 - tau2 * tau2;
  return g * g * square / (tau2 * tau2) - 2 * y * g * u.M1 / tau2 + y * y +
         (q - g * g / tau2) * u.H;
}

TEST(NodeError, TablesReachWhereUniversalFunctionsDo) {
  for (const std::int64_t L : {std::int64_t{1}, std::int64_t{7}, std::int64_t{1000000000}}) {
    const NodeTables tables(L);
    for (const double tau : {0.3, 12.0, 39.0, 41.0, 77.0, 133.0, 250.0, 599.0}) {
      const double q = 1.3, y = 0.4, g = 0.8 * tau * std::sqrt(q);
      const NodeError e = node_error(tables.up_to(tau).at_tau2(tau * tau), 1, g, q, y);
      const double want = error_of(universal(L, tau), tau, g, q, y);
      EXPECT_TRUE(close(e.value, want, 1e-8 * (1 + tau * tau / 1e3))) << L << " " << tau;
      const double h = 1e-4 * tau * tau;
      const auto at = [&](double tau2) {
        return node_error(tables.up_to(tau).at_tau2(tau2), 1, g, q, y).value;
      };
      const double slope = (at(tau * tau + h) - at(tau * tau - h)) / (2 * h);
      // m grows like tau^2, and its rounding with it.
      EXPECT_NEAR(e.d_tau2 * tau * tau, slope * tau * tau, 2e-5 + 2e-9 * tau * tau) << L << " " << tau;
    }
  }
}

// Beyond tau = 600 softmax is frozen. With one token the error is known: E (r'z - y)^2 = q + y^2.
TEST(NodeError, FrozenBeyondTheTables) {
  const double tau = 5000, q = 1.3, y = 0.4, g = 0.8 * tau * std::sqrt(q);
  const NodeError one = node_error(NodeTables(1).up_to(tau).at_tau2(tau * tau), 1, g, q, y);
  EXPECT_TRUE(close(one.value, q + y * y, 1e-6));
  // Two tokens: S is the larger score, E max = tau/sqrt(pi), E max^2 = tau^2, and H = 1 - E S/tau^2.
  const NodeError two = node_error(NodeTables(2).up_to(tau).at_tau2(tau * tau), 1, g, q, y);
  const double pi = 3.14159265358979, ratio = g / tau, H = 1 - 1 / (tau * std::sqrt(pi));
  const double want =
      ratio * ratio - 2 * y * ratio / std::sqrt(pi) + y * y + (q - ratio * ratio) * H;
  EXPECT_TRUE(close(two.value, want, 1e-5));
}

}  // namespace
}  // namespace esscher
