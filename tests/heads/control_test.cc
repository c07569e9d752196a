#include "esscher/heads/control.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/estimate/moments.h"
#include "esscher/random/stream.h"
#include "esscher/universal/universal.h"
#include "tests/testing.h"

namespace esscher {
namespace {

// Squared error and signal over prompts that were really drawn.
struct Measured {
  Moments error2;
  Moments signal2;
};

// Gaussian prompts of n keys: scores s, one value coordinate that follows the score with gain
// c/tau^2 and has `rest` of independent variance; the surrogate is fitted to each prompt itself.
Measured measure(int n, double tau, double c, double rest, int prompts, const Stream& stream) {
  Measured out;
  for (int r = 0; r < prompts; ++r) {
    const Stream normals = stream.split(r);
    Vector s(n);
    Vector v(n);
    for (int l = 0; l < n; ++l) {
      s(l) = tau * normals.normal(2 * l);
      v(l) = c / (tau * tau) * s(l) + std::sqrt(rest) * normals.normal(2 * l + 1);
    }
    const Vector w = (s.array() - s.maxCoeff()).exp();
    const double moved = w.dot(v) / w.sum() - v.mean();
    const double linear = (s.array() - s.mean()).matrix().dot(v) / n;
    out.error2.add((moved - linear) * (moved - linear));
    out.signal2.add(moved * moved);
  }
  return out;
}

TEST(Control, IsTheMeanOverGaussianPrompts) {
  for (const int n : {2, 3, 20, 300}) {
    for (const double tau : {0.4, 1.0, 2.0}) {
      const double c = 0.7 * tau;
      const double rest = 0.5;
      const Measured drawn = measure(n, tau, c, rest, 4000, Stream(11, n));
      const Control exact = gaussian_control(
          n, {.tau2 = tau * tau, .signal2 = c * c, .value_var = c * c / (tau * tau) + rest});
      EXPECT_TRUE(testing::agrees(drawn.error2.estimate(Engine::direct), exact.error2)) << n;
      EXPECT_TRUE(testing::agrees(drawn.signal2.estimate(Engine::direct), exact.signal2)) << n;
    }
  }
}

// Beyond the universal functions the frozen law continues them.
TEST(Control, GoesOnWhereEveryPromptIsFrozen) {
  for (const int n : {2, 20, 300}) {
    constexpr double tau = 3 * kMaxTau;
    const Measured drawn = measure(n, tau, tau, 0.5, 4000, Stream(12, n));
    const Control exact =
        gaussian_control(n, {.tau2 = tau * tau, .signal2 = tau * tau, .value_var = 1.5});
    EXPECT_TRUE(testing::agrees(drawn.error2.estimate(Engine::direct), exact.error2)) << n;
    EXPECT_TRUE(testing::agrees(drawn.signal2.estimate(Engine::direct), exact.signal2)) << n;
  }
}

TEST(Control, LinearFromIsTheFirstLengthWithinTolerance) {
  const ScoreMoments query{.tau2 = 1.0, .signal2 = 1.0, .value_var = 4.0};
  const std::int64_t L = linear_from(query, 0.1).count();
  EXPECT_LE(gaussian_control(L, query).relative(), 0.1);
  EXPECT_GT(gaussian_control(L - std::max<std::int64_t>(1, L / 900), query).relative(), 0.1);
}

TEST(Control, FrozenHeadsAreNeverLinear) {
  EXPECT_TRUE(linear_from({.tau2 = 64.0, .signal2 = 64.0, .value_var = 2.0}, 0.1).is_infinite());
}

TEST(Control, ConstantScoresHaveNothingToExplain) {
  EXPECT_EQ(gaussian_control(100, {.tau2 = 0, .signal2 = 0, .value_var = 1}).relative(), 0.0);
}

}  // namespace
}  // namespace esscher
