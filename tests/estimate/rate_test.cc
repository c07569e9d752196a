#include "esscher/estimate/rate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/estimate/tails.h"
#include "esscher/random/stream.h"
#include "tests/coverage.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;

const std::vector<std::int64_t> kLengths = {10, 30, 100, 300, 1000, 3000, 10000};

template <class F>
Vector curve(F f) {
  Vector v(static_cast<Index>(kLengths.size()));
  for (std::size_t i = 0; i < kLengths.size(); ++i) {
    v[static_cast<Index>(i)] = f(static_cast<double>(kLengths[i]));
  }
  return v;
}

TEST(Rate, ExactPowerLaw) {
  const PowerFit fit =
      fit_power(kLengths, curve([](double L) { return 2.5 * std::pow(L, -0.7); }), Matrix());
  EXPECT_TRUE(close(fit.slope, -0.7, 1e-12));
  EXPECT_TRUE(close(std::exp(fit.log_c), 2.5, 1e-12));
  EXPECT_LT(fit.std_error, 1e-12);
}

// A common factor moves the curve, not its slope: correlation must shrink the slope's error to 0.
TEST(Rate, CommonNoiseDoesNotBlurTheSlope) {
  const Index k = static_cast<Index>(kLengths.size());
  const Vector v = curve([](double L) { return 1 / L; });
  const Matrix common = Matrix::Constant(k, k, 0.04);
  EXPECT_LT(fit_power(kLengths, v, common).std_error, 1e-8);
  const Matrix independent = 0.04 * Matrix::Identity(k, k);
  const PowerFit fit = fit_power(kLengths, v, independent);
  double sxx = 0, mean = 0;
  for (auto L : kLengths) mean += std::log(static_cast<double>(L)) / static_cast<double>(k);
  for (auto L : kLengths) sxx += std::pow(std::log(static_cast<double>(L)) - mean, 2);
  EXPECT_TRUE(close(fit.std_error, 0.2 / std::sqrt(sxx), 1e-9));
}

// Noise that the points share hides no misfit: the larger of two errors and Student's t make the
// interval conservative, never optimistic.
TEST(Rate, SlopeIntervalCovers) {
  const Index k = static_cast<Index>(kLengths.size());
  const Matrix cov = 0.01 * (0.5 * Matrix::Ones(k, k) + 0.5 * Matrix::Identity(k, k));
  int covered = 0;
  for (std::uint64_t rep = 0; rep < 1000; ++rep) {
    const Stream s = Stream(3).split(rep);
    Vector v = curve([](double L) { return 1 / L; });
    for (Index i = 0; i < k; ++i) {
      v[i] *= std::exp(0.1 * std::sqrt(0.5) *
                       (s.normal(0) + s.normal(static_cast<std::uint64_t>(i + 1))));
    }
    covered += fit_power(kLengths, v, cov).ci.contains(-1.0) ? 1 : 0;
  }
  EXPECT_GE(covered, 950 - testing::kSigmas * std::sqrt(1000 * 0.95 * 0.05));
}

// Misfit of points with noise of their own is mostly that noise: the interval covers as often as it
// says. With two spare points, the wider of two intervals would hold nearly always.
TEST(Rate, SlopesOfIndependentPointsAreCalibrated) {
  const std::vector<std::int64_t> lengths = {10, 30, 100, 300};
  testing::Coverage c{.seeds = 4000};
  for (std::uint64_t rep = 0; rep < 4000; ++rep) {
    Vector v(4);
    for (std::uint64_t i = 0; i < 4; ++i) {
      v[static_cast<Index>(i)] =
          std::exp(0.1 * Stream(4).split(rep).normal(i)) / static_cast<double>(lengths[i]);
    }
    c.held += fit_power(lengths, v, 0.01 * Matrix::Identity(4, 4)).ci.contains(-1.0) ? 1 : 0;
  }
  testing::expect_calibrated(c, "independent noise");
}

// A curve that bends by much more than its noise has no slope to a hundredth: the misfit counts.
TEST(Rate, BentCurvesHaveTheErrorOfTheirMisfit) {
  const Matrix cov = 1e-6 * Matrix::Identity(7, 7);
  const Vector bent = curve([](double L) { return 1 / (L * std::log(L)); });
  const PowerFit with_noise = fit_power(kLengths, bent, cov);
  const PowerFit without = fit_power(kLengths, bent, Matrix());
  EXPECT_TRUE(close(with_noise.std_error, without.std_error, 1e-9));
  EXPECT_GT(with_noise.std_error, 0.01);
  // Variances known from few prompts tell less of a misfit.
  const Matrix large = 4e-3 * Matrix::Identity(7, 7);
  EXPECT_GT(fit_power(kLengths, bent, large).std_error,
            1.01 * fit_power(kLengths, bent, large, 2).std_error);
}

TEST(Rate, LocalExponents) {
  Matrix cov = Matrix::Zero(7, 7);
  cov(0, 0) = cov(1, 1) = 0.01;
  const auto e =
      local_exponents(kLengths, curve([](double L) { return 3 * std::pow(L, -0.8); }), cov);
  ASSERT_EQ(e.size(), 6u);
  EXPECT_TRUE(close(e[0].exponent, 0.8, 1e-12));
  EXPECT_TRUE(close(e[0].L, std::sqrt(300.0), 1e-12));
  EXPECT_TRUE(close(e[0].std_error, std::sqrt(0.02) / std::log(3.0), 1e-12));
}

TEST(Rate, AicFindsTheShape) {
  const auto best = [](const Vector& v, const Matrix& cov) {
    const auto fits = compare_shapes(kLengths, v, cov);
    return std::max_element(fits.begin(), fits.end(),
                            [](auto& a, auto& b) { return a.weight < b.weight; })
        ->shape;
  };
  const Vector inverse = curve([](double L) { return 2 / L; });
  const Vector log_power = curve([](double L) { return 2 * std::log(L) * std::pow(L, -0.9); });
  const Vector power = curve([](double L) { return 2 * std::pow(L, -0.6); });
  const Matrix cov = 1e-6 * Matrix::Identity(7, 7);
  for (const Matrix& c : {Matrix(), cov}) {
    EXPECT_EQ(best(inverse, c), Shape::inverse);
    EXPECT_EQ(best(log_power, c), Shape::log_power);
    EXPECT_EQ(best(power, c), Shape::power);
  }
  EXPECT_TRUE(close(compare_shapes(kLengths, log_power, cov)[1].g, 0.9, 1e-9));
}

TEST(Rate, RefusesWhatCannotBeFitted) {
  EXPECT_THROW(fit_power({1, 2}, Vector::Ones(2), Matrix()), ArgumentError);
  EXPECT_THROW(fit_power({1, 2, 3}, Vector::Zero(3), Matrix()), ArgumentError);
  EXPECT_THROW(fit_power({1, 2, 3}, Vector::Ones(2), Matrix()), DimensionError);
  EXPECT_THROW(compare_shapes({1, 2, 3, 4}, Vector::Ones(4), Matrix()), ArgumentError);
}

Vector pareto(double alpha, Index n) {
  Vector x(n);
  for (Index i = 0; i < n; ++i)
    x[i] = std::pow(Stream(5).uniform(static_cast<std::uint64_t>(i)), -1 / alpha);
  return x;
}

TEST(Tails, ParetoIsReadRight) {
  const TailReport heavy = tail_report(pareto(1.2, 5000));
  EXPECT_TRUE(heavy.heavy);
  // The tail index of k = 100 exceedances of an exact Pareto law has relative error 1/sqrt(k).
  EXPECT_TRUE(agrees({heavy.hill, 1.2 / 10, 100}, 1.2));
  EXPECT_FALSE(heavy.reason.empty());
  const TailReport light = tail_report(pareto(6, 5000));
  EXPECT_FALSE(light.heavy) << light.reason;
  EXPECT_TRUE(agrees({light.hill, 6.0 / 10, 100}, 6));
}

// 64 squares of normal numbers, averaged in pairs: no tail at all, and none may be seen.
TEST(Tails, SmallMildSamplesAreNotHeavy) {
  int heavy = 0;
  for (std::uint64_t k = 0; k < 500; ++k) {
    const Stream s = Stream(6).split(k);
    Vector x(64);
    for (Index i = 0; i < 64; ++i) x[i] = -std::log(s.uniform(static_cast<std::uint64_t>(i)));
    heavy += tail_report(x).heavy ? 1 : 0;
  }
  EXPECT_LE(heavy, 15);
  EXPECT_TRUE(tail_report(pareto(0.8, 64)).heavy);
}

TEST(Tails, EdgesAreNotHeavy) {
  EXPECT_FALSE(tail_report(Vector::Zero(100)).heavy);
  EXPECT_FALSE(tail_report(Vector::Ones(100)).heavy);
  EXPECT_FALSE(tail_report(Vector::Ones(1)).heavy);
}

}  // namespace
}  // namespace esscher
