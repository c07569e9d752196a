#include "esscher/universal/needle.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "esscher/base/error.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

// One other score, and two of them, on a grid of normals.
TEST(Needle, OneAndTwoOthersByBruteForce) {
  for (const double tau : {0.0, 0.2, 1.0, 5.0}) {
    for (const double c : {-30.0, -2.0, 0.0, 1.5, 20.0}) {
      double one = 0, two = 0;
      const double step = 0.05;
      for (double g = -9; g <= 9; g += step) {
        const double p = step * std::exp(-0.5 * g * g) / std::sqrt(2 * std::numbers::pi);
        one += p / (1 + std::exp(tau * g - c));
        for (double h = -9; h <= 9; h += step) {
          const double q = step * std::exp(-0.5 * h * h) / std::sqrt(2 * std::numbers::pi);
          two += p * q / (1 + std::exp(tau * g - c) + std::exp(tau * h - c));
        }
      }
      EXPECT_TRUE(close(needle_weight(1, tau, c), one, 1e-10, 1e-5)) << tau << " " << c;
      EXPECT_TRUE(close(needle_weight(2, tau, c), two, 1e-10, 1e-5)) << tau << " " << c;
    }
  }
}

TEST(Needle, EntropyOfTwoScores) {
  for (const double tau : {0.0, 0.3, 2.0}) {
    double want = 0;
    const double step = 0.02, scale = std::sqrt(2.0) * tau;
    for (double g = -9; g <= 9; g += step) {
      const double p = step * std::exp(-0.5 * g * g) / std::sqrt(2 * std::numbers::pi);
      const double x = scale * g, w = 1 / (1 + std::exp(-x));
      want += p * (std::log1p(std::exp(-std::abs(x))) + std::abs(x) * (x > 0 ? 1 - w : w));
    }
    EXPECT_TRUE(close(weight_entropy(2, tau), want, 1e-10)) << tau;
  }
}

TEST(Needle, HalfTheWeightAtTheBulk) {
  for (const double n : {1e3, 1e9, 1e15}) {
    for (const double tau : {0.5, 1.0, 2.0}) {
      EXPECT_NEAR(needle_weight(n, tau, std::log(n) + 0.5 * tau * tau), 0.5, n > 1e8 ? 1e-3 : 0.1);
    }
  }
}

TEST(Needle, EndsAndArguments) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(needle_weight(10, 1, infinity), 1);
  EXPECT_EQ(needle_weight(10, 1, -infinity), 0);
  EXPECT_EQ(needle_weight(0, 1, -5), 1);
  EXPECT_TRUE(close(needle_weight(10, 1, 1e4), 1, 1e-12));
  EXPECT_TRUE(close(needle_weight(9, 0, 0), 0.1, 1e-12));
  EXPECT_TRUE(close(needle_weight(1e15, 600, 0) * 1e100, 0, 1, 1e-3));
  EXPECT_EQ(testing::message_of<ArgumentError>([] { return needle_weight(-1, 1, 0); }),
            "needle: n is -1, expected a number >= 0");
}

}  // namespace
}  // namespace esscher
