#include "esscher/heads/control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "esscher/random/stream.h"
#include "esscher/universal/universal.h"
#include "tests/testing.h"

namespace esscher {
namespace {

struct Draw {
  double error2 = 0;
  double signal2 = 0;
};

// One Gaussian prompt: scores s, one value coordinate that follows the score with gain c/tau^2 and
// `rest` of independent variance; surrogate fitted to this same prompt.
Draw draw(int n, double tau, double c, double rest, const Stream& stream) {
  Vector s(n);
  Vector v(n);
  for (int l = 0; l < n; ++l) {
    s(l) = tau * stream.normal(2 * l);
    v(l) = c / (tau * tau) * s(l) + std::sqrt(rest) * stream.normal(2 * l + 1);
  }
  const Vector w = (s.array() - s.maxCoeff()).exp();
  const double moved = w.dot(v) / w.sum() - v.mean();
  const double linear = (s.array() - s.mean()).matrix().dot(v) / n;
  return {(moved - linear) * (moved - linear), moved * moved};
}

TEST(Control, IsTheMeanOverGaussianPrompts) {
  for (const int n : {2, 3, 20, 300}) {
    for (const double tau : {0.4, 1.0, 2.0}) {
      const double c = 0.7 * tau;
      const double rest = 0.5;
      constexpr int kPrompts = 4000;
      double e = 0, ee = 0, s = 0, ss = 0;
      for (int r = 0; r < kPrompts; ++r) {
        const Draw one = draw(n, tau, c, rest, Stream(11, n).split(r));
        e += one.error2;
        ee += one.error2 * one.error2;
        s += one.signal2;
        ss += one.signal2 * one.signal2;
      }
      const auto estimate = [](double sum, double squares) {
        const double mean = sum / kPrompts;
        const double sd = std::sqrt(squares / kPrompts - mean * mean);
        return Estimate{mean, sd / std::sqrt(kPrompts), kPrompts, Engine::direct};
      };
      const Control exact = gaussian_control(
          n, {.tau2 = tau * tau, .signal2 = c * c, .value_var = c * c / (tau * tau) + rest});
      EXPECT_TRUE(testing::agrees(estimate(e, ee), exact.error2)) << n << " " << tau;
      EXPECT_TRUE(testing::agrees(estimate(s, ss), exact.signal2)) << n << " " << tau;
    }
  }
}

// Beyond the universal functions the frozen law continues them.
TEST(Control, GoesOnWhereEveryPromptIsFrozen) {
  for (const int n : {2, 20, 300}) {
    constexpr double tau = 3 * kMaxTau;
    constexpr int kPrompts = 4000;
    double error = 0, signal = 0;
    for (int r = 0; r < kPrompts; ++r) {
      const Draw one = draw(n, tau, tau, 0.5, Stream(12, n).split(r));
      error += one.error2 / kPrompts;
      signal += one.signal2 / kPrompts;
    }
    const Control got =
        gaussian_control(n, {.tau2 = tau * tau, .signal2 = tau * tau, .value_var = 1.5});
    EXPECT_TRUE(testing::close(got.error2, error, 0.1)) << n;
    EXPECT_TRUE(testing::close(got.signal2, signal, 0.1)) << n;
  }
}

TEST(Control, LinearFromIsTheFirstLengthWithinTolerance) {
  const QueryMoments query{.tau2 = 1.0, .signal2 = 1.0, .value_var = 4.0};
  const std::int64_t L = linear_from(query, 0.1);
  EXPECT_LE(gaussian_control(L, query).relative(), 0.1);
  EXPECT_GT(gaussian_control(L - std::max<std::int64_t>(1, L / 900), query).relative(), 0.1);
}

TEST(Control, FrozenHeadsAreNeverLinear) {
  EXPECT_EQ(linear_from({.tau2 = 64.0, .signal2 = 64.0, .value_var = 2.0}, 0.1), kNeverLinear);
}

TEST(Control, ConstantScoresHaveNothingToExplain) {
  EXPECT_EQ(gaussian_control(100, {.tau2 = 0, .signal2 = 0, .value_var = 1}).relative(), 0.0);
}

}  // namespace
}  // namespace esscher
