#include "esscher/heads/causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>

#include "esscher/estimate/quantile.h"
#include "esscher/heads/detail/two_clusters.h"
#include "esscher/heads/rotary.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/empirical.h"
#include "tests/coverage.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using testing::random_matrix;

constexpr Index kWidth = 5;
constexpr Index kQueries = 8;

using Keys = std::function<Matrix(const Stream& stream, Index n)>;

Matrix gaussian(const Stream& stream, Index n) { return random_matrix(stream, n, kWidth); }

// Two clusters in turn, three deviations apart along the first coordinate.
Matrix clustered(const Stream& stream, Index n) {
  Matrix keys = gaussian(stream, n);
  for (Index l = 0; l < n; ++l) keys(l, 0) += l * 7 % 2 == 0 ? 2.0 : -2.0;
  return keys;
}

// Student's t with four degrees of freedom.
Matrix heavy(const Stream& stream, Index n) {
  Matrix keys = gaussian(stream.split(1), n);
  const Matrix extra = random_matrix(stream.split(2), n, 4);
  for (Index l = 0; l < n; ++l) keys.row(l) /= std::sqrt(extra.row(l).squaredNorm() / 4);
  return keys;
}

Matrix drifting(const Stream& stream, Index n) {
  Matrix keys = gaussian(stream, n);
  for (Index l = 0; l < n; ++l) {
    keys.row(l).array() += 1.0 * static_cast<double>(l) / static_cast<double>(n);
  }
  return keys;
}

// A stationary autoregression: neighbours depend on each other, nothing drifts.
Matrix dependent(const Stream& stream, Index n) {
  Matrix keys = gaussian(stream, n);
  for (Index l = 1; l < n; ++l) keys.row(l) = 0.7 * keys.row(l - 1) + std::sqrt(0.51) * keys.row(l);
  return keys;
}

// How often each cause is found among so many prompts.
std::map<Cause, double> found_shares(const Keys& keys, Index n, int prompts) {
  std::map<Cause, double> out;
  const Matrix a = random_matrix(Stream(81, 1), kQueries, kWidth, 0.7);
  for (int r = 0; r < prompts; ++r) {
    const Stream stream = Stream(81, 2).split(r);
    const Matrix K = keys(stream.split(0), n);
    for (const CauseRow& row : cause_rows({.scores = K * a.transpose()}, stream.split(1))) {
      out[row.cause] += row.found ? 1.0 / prompts : 0.0;
    }
  }
  return out;
}

// 200 prompts: the standard error of a share of 5 % is 1.5 %.
TEST(Causes, IndependentGaussianKeysAreAccusedWithTheStatedProbability) {
  const auto shares = found_shares(gaussian, 200, 200);
  for (const Cause cause : {Cause::kurtosis, Cause::tails, Cause::clusters, Cause::drift}) {
    EXPECT_NEAR(shares.at(cause), 0.05, 4 * std::sqrt(0.05 * 0.95 / 200)) << name(cause);
  }
}

TEST(Causes, WhatIsPlantedIsFound) {
  EXPECT_GT(found_shares(clustered, 400, 30).at(Cause::clusters), 0.9);
  EXPECT_GT(found_shares(heavy, 400, 30).at(Cause::tails), 0.8);
  EXPECT_GT(found_shares(heavy, 400, 30).at(Cause::kurtosis), 0.9);
  EXPECT_GT(found_shares(drifting, 400, 30).at(Cause::drift), 0.9);
}

// Heavy tails are no clusters, and keys that depend on their neighbours do not drift.
TEST(Causes, OneCauseIsNotTakenForAnother) {
  EXPECT_LT(found_shares(heavy, 400, 40).at(Cause::clusters), 0.5);
  EXPECT_LT(found_shares(dependent, 1000, 60).at(Cause::drift), 0.2);
}

TEST(Causes, StatisticsAreTheirDefinitions) {
  const Index n = 120;
  const Matrix s = random_matrix(Stream(82, 1), n, 3, 2.0).array() + 5;
  double drift2 = 0, beyond = 0;
  std::vector<double> kurtosis;
  for (Index i = 0; i < 3; ++i) {
    double mean = 0, m2 = 0, m4 = 0, first = 0, second = 0;
    for (Index l = 0; l < n; ++l) mean += s(l, i) / n;
    for (Index l = 0; l < n; ++l) m2 += std::pow(s(l, i) - mean, 2) / n;
    for (Index l = 0; l < n; ++l) {
      const double x = (s(l, i) - mean) / std::sqrt(m2);
      m4 += std::pow(x, 4) / n;
      beyond += std::abs(x) > 3 ? 1 : 0;
      (l < n / 2 ? first : second) += x / (n / 2);
    }
    kurtosis.push_back(m4);
    drift2 += std::pow(first - second, 2) / 3;
  }
  std::sort(kurtosis.begin(), kurtosis.end());
  EXPECT_TRUE(testing::close(median_kurtosis(s), kurtosis[1], 1e-12));
  EXPECT_TRUE(testing::close(half_drift(s), std::sqrt(drift2), 1e-12));
  EXPECT_TRUE(
      testing::close(tail_ratio(s), beyond / (3 * n) / std::erfc(3 / std::sqrt(2.0)), 1e-12));
}

// In one dimension, by the densities themselves; far clusters gain what their law says.
TEST(Causes, TheGainOfClustersIsTheDifferenceOfLogLikelihoods) {
  const Index n = 20'000;
  const Matrix noise = random_matrix(Stream(83, 1), 2 * n, 1);
  Matrix x(n, 1), y(n, 1);
  for (Index l = 0; l < n; ++l) {
    x(l, 0) = noise(l, 0) + (l % 2 == 0 ? 3 : -3);
    y(l, 0) = noise(n + l, 0) + (l % 2 == 0 ? 3 : -3);
  }
  double want = 0;
  for (Index l = 0; l < n; ++l) {
    const double two = 0.5 * std::exp(-0.5 * std::pow(y(l, 0) - 3, 2)) +
                       0.5 * std::exp(-0.5 * std::pow(y(l, 0) + 3, 2));
    want += (std::log(two) + 0.5 * std::log(10.0) + 0.5 * y(l, 0) * y(l, 0) / 10) / n;
  }
  EXPECT_NEAR(held_out_gains(x, y).mean(), want, 5e-3);
  EXPECT_GT(want, 0.4);
}

// Keys that are one vector, turned by their positions, and little noise.
TEST(Causes, PositionsOfRotaryKeysAreFound) {
  const Index n = 200;
  const Rotary rotary{.base = 100, .pairs = RotaryPairs::halves};
  for (const double mean : {0.0, 2.0}) {
    Matrix still = random_matrix(Stream(84, 1), n, 6, 0.3);
    still.array() += mean;
    CauseInput input{.scores = {}, .rotary = rotary};
    input.keys = rotated(rotary, still, 0, false);
    input.a = random_matrix(Stream(84, 2), kQueries, 6, 0.7);
    input.scores = input.keys * input.a.transpose();
    for (Index l = 0; l < n; ++l) input.places.push_back(l);
    bool looked = false;
    for (const CauseRow& row : cause_rows(input, Stream(1))) {
      if (row.cause != Cause::position) continue;
      looked = true;
      EXPECT_EQ(row.found, mean > 0) << row.text;
      EXPECT_LE(row.low, row.value);
      EXPECT_GE(row.high, row.value);
      if (mean > 0) {
        EXPECT_GT(row.value, 0.8);
      }
    }
    EXPECT_TRUE(looked);
  }
}

TEST(Causes, SharesAndKappaHaveTheirIntervals) {
  CauseInput input{.scores = Matrix::Zero(3, 1),
                   .dependence = KeyDependence{.kappa = 4, .low = 2.5, .high = 5.5},
                   .dominant = 0.8,
                   .queries = 100};
  const std::vector<CauseRow> rows = cause_rows(input, Stream(1));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows[0].found);
  EXPECT_EQ(rows[0].value, 4);
  EXPECT_TRUE(rows[1].found);
  EXPECT_NEAR(rows[1].low, 0.7112, 1e-3);  // Wilson's interval of 80 in 100
  EXPECT_NEAR(rows[1].high, 0.8666, 1e-3);
  EXPECT_THAT(causes_text(rows),
              HasSubstr("n keys are worth n/4 (95 %: 2.5 to 5.5); one key takes"));
  input.dominant = 0.5;
  input.dependence->low = 0.9;
  EXPECT_THAT(causes_text(cause_rows(input, Stream(1))), HasSubstr("no departure"));
}

// One half after the other, by the statistic itself.
TEST(Causes, TheErrorOfAKurtosisIsItsSpreadOverHalves) {
  const Index n = 40 * kCauseBlocks;
  const Matrix s = random_matrix(Stream(90), n, 5).array() + 3;
  double sum = 0, squares = 0;
  int halves = 0;
  for (unsigned half = 0; half < 1U << kCauseBlocks; ++half) {
    if (std::popcount(half) != kCauseBlocks / 2) continue;
    Matrix kept(n / 2, s.cols());
    Index used = 0;
    for (Index b = 0; b < kCauseBlocks; ++b) {
      if ((half >> b & 1U) == 0) continue;
      kept.middleRows(40 * used++, 40) = s.middleRows(40 * b, 40);
    }
    const double value = median_kurtosis(kept);
    sum += value;
    squares += value * value;
    ++halves;
  }
  const double variance = squares / halves - std::pow(sum / halves, 2);
  EXPECT_EQ(halves, 252);
  EXPECT_TRUE(testing::close(median_kurtosis_error(s), std::sqrt(variance), 1e-9));
}

// Over prompts, the error is that of the kurtosis. Blocks left out one at a time say a quarter more.
TEST(Causes, TheErrorOfAKurtosisIsNeitherTooLargeNorTooSmall) {
  const Matrix a = random_matrix(Stream(81, 1), kQueries, kWidth, 0.7);
  constexpr int kPrompts = 1000;
  double sum = 0, squares = 0, stated = 0;
  for (int r = 0; r < kPrompts; ++r) {
    const Matrix s = gaussian(Stream(91).split(r), 600) * a.transpose();
    const double value = median_kurtosis(s);
    sum += value / kPrompts;
    squares += value * value / kPrompts;
    stated += std::pow(median_kurtosis_error(s), 2) / kPrompts;
  }
  EXPECT_NEAR(std::sqrt(stated / (squares - sum * sum)), 1.05, 0.1);
}

using testing::Coverage, testing::expect_calibrated;

// How often the intervals of some causes hold the truth, and how often they are flagged.
std::map<Cause, Coverage> coverage(const Keys& keys, Index n, const std::map<Cause, double>& truths,
                                   int prompts) {
  std::map<Cause, Coverage> out;
  const Matrix a = random_matrix(Stream(81, 1), kQueries, kWidth, 0.7);
  for (int r = 0; r < prompts; ++r) {
    const Matrix K = keys(Stream(85).split(r), n);
    for (const CauseRow& row : cause_rows({.scores = K * a.transpose()}, Stream(86).split(r))) {
      const auto truth = truths.find(row.cause);
      if (truth == truths.end()) continue;
      Coverage& c = out[row.cause];
      ++c.seeds;
      c.flagged += row.flag ? 1 : 0;
      c.held += !row.flag && row.low <= truth->second && truth->second <= row.high ? 1 : 0;
    }
  }
  return out;
}

// Halves of a law whose mean moves by 1 in every coordinate are 1/sqrt(1 + 1/4) deviations apart if
// all coordinates have one weight; a query weighs them by its own.
double drift_of_steps() {
  const Matrix a = random_matrix(Stream(81, 1), kQueries, kWidth, 0.7);
  double squares = 0;
  for (Index i = 0; i < kQueries; ++i) {
    const double step = a.row(i).sum(), spread = a.row(i).squaredNorm() + step * step / 4;
    squares += step * step / spread / kQueries;
  }
  return std::sqrt(squares);
}

Matrix stepped(const Stream& stream, Index n) {
  Matrix keys = gaussian(stream, n);
  keys.bottomRows(n - n / 2).array() += 1.0;
  return keys;
}

TEST(Causes, IntervalsHoldTheTruth) {
  const auto alone =
      coverage(gaussian, 800, {{Cause::kurtosis, 3}, {Cause::tails, 1}, {Cause::drift, 0}}, 120);
  for (const auto& [cause, c] : alone) expect_calibrated(c, name(cause));
  const auto apart = coverage(stepped, 400, {{Cause::drift, drift_of_steps()}}, 120);
  expect_calibrated(apart.at(Cause::drift), "drift of one deviation");
}

// Keys N(u, s^2 I) before their rotation: Var_l <a, R_l u> is known, and noise adds s^2 |a|^2.
TEST(Causes, PositionsHaveTheirShare) {
  const Index n = 600, d = 6;
  const double spread = 0.3;
  const Rotary rotary{.base = 100, .pairs = RotaryPairs::halves};
  const Vector u = Vector::Constant(d, 0.5);
  CauseInput input{.scores = {}, .rotary = rotary};
  input.a = random_matrix(Stream(84, 3), kQueries, d, 0.7);
  for (Index l = 0; l < n; ++l) input.places.push_back(l);
  const Matrix clean =
      rotated(rotary, Matrix(Vector::Ones(n) * u.transpose()), 0, false) * input.a.transpose();
  std::vector<double> shares;
  for (Index i = 0; i < kQueries; ++i) {
    const double by_place = (clean.col(i).array() - clean.col(i).mean()).square().mean();
    shares.push_back(by_place / (by_place + spread * spread * input.a.row(i).squaredNorm()));
  }
  const double truth = median(shares);
  Coverage c;
  for (const int r : testing::coverage_seeds(150)) {
    const Matrix still = random_matrix(Stream(89).split(r), n, d, spread).rowwise() + u.transpose();
    input.keys = rotated(rotary, still, 0, false);
    input.scores = input.keys * input.a.transpose();
    for (const CauseRow& row : cause_rows(input, Stream(1))) {
      if (row.cause != Cause::position) continue;
      ++c.seeds;
      c.held += row.low <= truth && truth <= row.high ? 1 : 0;
    }
  }
  testing::record_coverage(0, "cause of a head: position", "rotary keys, noise of 0.3", "600 keys",
                           c);
  expect_calibrated(c, "position");
}

// Few keys carry the kurtosis of Student's t, and uniform keys have next to none beyond three
// deviations: no interval can be trusted there.
TEST(Causes, IntervalsThatCannotHoldAreFlagged) {
  EXPECT_GE(coverage(heavy, 600, {{Cause::kurtosis, 9}}, 30)[Cause::kurtosis].flagged, 28);
  const Keys flat = [](const Stream& stream, Index n) {
    return Uniform(kWidth).sample(stream, n).tokens();
  };
  EXPECT_GE(coverage(flat, 600, {{Cause::tails, 0}}, 30)[Cause::tails].flagged, 28);
  const Matrix a = random_matrix(Stream(81, 1), kQueries, kWidth, 0.7);
  const Matrix K = heavy(Stream(87), 600);
  const CauseRow row = cause_rows({.scores = K * a.transpose()}, Stream(88)).front();
  EXPECT_THAT(row.text, HasSubstr("not to be trusted: few keys carry"));
}

}  // namespace
}  // namespace esscher
