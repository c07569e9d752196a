#include "esscher/estimate/two_level.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
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

// The sample variance of normals of variance v with n degrees of freedom has the standard error
// v sqrt(2/n), and a standard deviation half the relative error of its square.
TEST(TwoLevel, DecomposesTheVariance) {
  const double Q = 4000, R = 8, between = 4.0, within = 0.25;
  const Matrix data = two_level_data(4000, 8, 2.0, 0.5, Stream(1));
  const TwoLevel t = two_level(data, Queries::random);
  const double of_means = between + within / R;
  EXPECT_TRUE(agrees({t.between, of_means * std::sqrt(2 / (Q - 1)), 4000}, between));
  const double within_error = within * std::sqrt(2 / (Q * (R - 1)));
  EXPECT_TRUE(agrees({t.within, within_error, 4000}, within));
  const double error = std::sqrt(of_means / Q);
  EXPECT_TRUE(agrees({t.std_error, error * std::sqrt(0.5 / (Q - 1)), 4000}, error));
  // Given queries count the noise of prompts only.
  const TwoLevel fixed = two_level(data, Queries::fixed);
  const double noise = std::sqrt(within / (Q * R));
  EXPECT_TRUE(agrees({fixed.std_error, noise * std::sqrt(0.5 / (Q * (R - 1))), 4000}, noise));
}

TEST(TwoLevel, RefusesTooLittleData) {
  EXPECT_THROW(two_level(Matrix::Ones(1, 5), Queries::random), ArgumentError);
  EXPECT_THROW(two_level(Matrix::Ones(5, 1), Queries::fixed), ArgumentError);
}

TEST(TwoLevel, BootstrapSeesBothLevels) {
  const Matrix x = two_level_data(300, 6, 2.0, 0.5, Stream(7));
  const Interval random = bootstrap_interval(x, Queries::random, 2000, Stream(9));
  const TwoLevel t = two_level(x, Queries::random);
  // An end is a quantile at 2.5 % of 2000 draws from nearly a normal law; the width has two of them.
  const double q = normal_quantile(0.95);
  const double density = std::exp(-0.5 * q * q) / std::sqrt(2 * std::numbers::pi);
  const double end_error = std::sqrt(0.025 * 0.975 / 2000) / density;
  const auto expect_width = [&](const Interval& ci, double std_error) {
    const double error = std::sqrt(2.0) * end_error * std_error;
    EXPECT_TRUE(agrees({ci.hi - ci.lo, error, 2000}, 2 * q * std_error));
  };
  expect_width(random, t.std_error * std::sqrt(299.0 / 300));
  const Interval fixed = bootstrap_interval(x, Queries::fixed, 2000, Stream(9));
  const TwoLevel f = two_level(x, Queries::fixed);
  // Resampling R = 6 prompts with replacement loses a factor sqrt(5/6).
  expect_width(fixed, f.std_error * std::sqrt(5.0 / 6));
}

// Skewed data, n = 60: the interval covers 95 %, up to the noise of 2000 repeats.
TEST(TwoLevel, IntervalOfSkewedDataCovers) {
  int covered = 0;
  for (std::uint64_t k = 0; k < 2000; ++k) {
    const Stream s = Stream(11).split(k);
    Vector x(60);
    for (Index i = 0; i < 60; ++i) x[i] = -std::log(s.uniform(static_cast<std::uint64_t>(i)));
    covered += mean_interval(x).contains(1.0) ? 1 : 0;
  }
  EXPECT_TRUE(agrees({covered / 2000.0, std::sqrt(0.95 * 0.05 / 2000), 2000}, 0.95));
}

TEST(TwoLevel, CovarianceOfMeans) {
  Matrix x(3, 2);
  x << 1, 2, 2, 4, 3, 6;
  Matrix want(2, 2);
  want << 1.0 / 3, 2.0 / 3, 2.0 / 3, 4.0 / 3;
  EXPECT_TRUE(close(covariance_of_means(x), want, 1e-14));
}

// Averages of two squares of normals, whose law is exponential: the interval ends where it should.
TEST(Interval, ChiSquareIsExactForSquares) {
  const Interval ci = chi_square_interval(3.0, 2, 0.95);
  EXPECT_TRUE(close(ci.lo, 3 / -std::log(0.025), 1e-12));
  EXPECT_TRUE(close(ci.hi, 3 / -std::log(0.975), 1e-12));
  const Interval many = chi_square_interval(3.0, 1e9, 0.95);
  EXPECT_TRUE(close(many.hi - 3, 1.959963984540054 * 3 * std::sqrt(2e-9), 1e-6));
}

// Squares of one normal number at two fixed queries of different size, two prompts each.
TEST(TwoLevel, MeanOfSquaresCovers) {
  const SquareLaw law{.means = Vector{{1.0, 4.0}}, .relative_variances = Vector{{2.0, 2.0}}};
  const int repeats = 4000;
  int covered = 0, plain = 0;
  for (int k = 0; k < repeats; ++k) {
    const Stream s = Stream(12).split(static_cast<std::uint64_t>(k));
    Matrix x(2, 2);
    for (Index i = 0; i < 4; ++i) {
      x(i / 2, i % 2) = law.means[i / 2] * std::pow(s.normal(static_cast<std::uint64_t>(i)), 2);
    }
    const Vector means = x.rowwise().mean();
    const Vector errors = (x.col(0) - x.col(1)).cwiseAbs() / 2;
    covered += mean_of_squares(means, errors, 2, law).ci.contains(2.5) ? 1 : 0;
    plain += two_level(x, Queries::fixed).ci.contains(2.5) ? 1 : 0;
  }
  EXPECT_TRUE(agrees({1.0 * covered / repeats, std::sqrt(0.95 * 0.05 / repeats), repeats}, 0.95));
  EXPECT_LT(plain, 0.9 * repeats) << "Student's t, for comparison";
}

TEST(Interval, KnownQuantiles) {
  EXPECT_TRUE(close(normal_quantile(0.95), 1.959963984540054, 1e-12));
  EXPECT_TRUE(close(student_quantile(5, 0.95), 2.570581835636314, 1e-12));
  EXPECT_THROW(normal_quantile(1.5), ArgumentError);
}

}  // namespace
}  // namespace esscher
