#include "esscher/estimate/two_level.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

// x_qr = 3 + s_between * N + s_within * N
Matrix two_level_data(Index Q, Index R, double s_between, double s_within, const Stream& stream) {
  Matrix x(Q, R);
  for (Index q = 0; q < Q; ++q) {
    const Stream s = stream.split(static_cast<std::uint64_t>(q));
    for (Index r = 0; r < R; ++r) {
      x(q, r) =
          3 + s_between * s.normal(0) + s_within * s.normal(static_cast<std::uint64_t>(r + 1));
    }
  }
  return x;
}

TEST(TwoLevel, DecomposesTheVariance) {
  const TwoLevel t = two_level(two_level_data(4000, 8, 2.0, 0.5, Stream(1)), Queries::random);
  EXPECT_TRUE(close(t.between, 4.0, 0.12));
  EXPECT_TRUE(close(t.within, 0.25, 0.06));
  EXPECT_TRUE(close(t.std_error, std::sqrt(4.0 / 4000 + 0.25 / 32000), 0.06));
}

TEST(TwoLevel, FixedQueriesCountPromptNoiseOnly) {
  const TwoLevel t = two_level(two_level_data(4000, 8, 2.0, 0.5, Stream(1)), Queries::fixed);
  EXPECT_TRUE(close(t.std_error, std::sqrt(0.25 / 32000), 0.06));
}

TEST(TwoLevel, RefusesTooLittleData) {
  EXPECT_THROW(two_level(Matrix::Ones(1, 5), Queries::random), ArgumentError);
  EXPECT_THROW(two_level(Matrix::Ones(5, 1), Queries::fixed), ArgumentError);
}

TEST(TwoLevel, BootstrapSeesBothLevels) {
  const Matrix x = two_level_data(300, 6, 2.0, 0.5, Stream(7));
  const Interval random = bootstrap_interval(x, Queries::random, 2000, Stream(9));
  const TwoLevel t = two_level(x, Queries::random);
  EXPECT_TRUE(close(random.hi - random.lo, 2 * 1.96 * t.std_error, 0.08));
  const Interval fixed = bootstrap_interval(x, Queries::fixed, 2000, Stream(9));
  const TwoLevel f = two_level(x, Queries::fixed);
  // Resampling R = 6 prompts with replacement loses a factor sqrt(5/6).
  EXPECT_TRUE(close(fixed.hi - fixed.lo, 2 * 1.96 * f.std_error * std::sqrt(5.0 / 6), 0.08));
}

// Skewed data, n = 60: the interval must cover about 95 %, with 2000 repeats a standard error of
// 0.5 %.
TEST(TwoLevel, IntervalOfSkewedDataCovers) {
  int covered = 0;
  for (std::uint64_t k = 0; k < 2000; ++k) {
    const Stream s = Stream(11).split(k);
    Vector x(60);
    for (Index i = 0; i < 60; ++i) x[i] = -std::log(s.uniform(static_cast<std::uint64_t>(i)));
    covered += mean_interval(x).contains(1.0) ? 1 : 0;
  }
  EXPECT_GE(covered, 1860);
  EXPECT_LE(covered, 1940);
}

TEST(TwoLevel, CovarianceOfMeans) {
  Matrix x(3, 2);
  x << 1, 2, 2, 4, 3, 6;
  Matrix want(2, 2);
  want << 1.0 / 3, 2.0 / 3, 2.0 / 3, 4.0 / 3;
  EXPECT_TRUE(close(covariance_of_means(x), want, 1e-14));
}

TEST(Interval, KnownQuantiles) {
  EXPECT_TRUE(close(normal_quantile(0.95), 1.959963984540054, 1e-12));
  EXPECT_TRUE(close(student_quantile(5, 0.95), 2.570581835636314, 1e-12));
  EXPECT_THROW(normal_quantile(1.5), ArgumentError);
}

}  // namespace
}  // namespace esscher
