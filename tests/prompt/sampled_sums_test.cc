// The SIMD sums against the same sums written plainly, over Stream::normal and over the runs of
// float normals of random/sfc-inl.h.
#include "esscher/prompt/sampled_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "esscher/simd/targets.h"
#include "tests/random/run_twin.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::run_of_normals;

enum class Kind { pair_float, pair_double, single_double };

ScoreSums slow(Kind kind, const Stream& stream, const ScoreRow& row, std::int64_t n) {
  const bool pair = kind != Kind::single_double;
  const std::vector<double> run =
      run_of_normals(stream, row.first_block, 2 * static_cast<std::size_t>(n));
  const auto normal = [&](std::uint64_t i) -> double {
    return kind == Kind::pair_float ? run[i] : stream.normal(2 * row.first_block + i);
  };
  const std::uint64_t step = pair ? 2 : 1;
  ScoreSums sums;
  sums.shift = -INFINITY;
  for (std::int64_t l = 0; l < n; ++l) {
    sums.shift = std::max(sums.shift, row.tau * normal(step * static_cast<std::uint64_t>(l)));
  }
  for (std::int64_t l = 0; l < n; ++l) {
    const auto i = step * static_cast<std::uint64_t>(l);
    const double x1 = normal(i) - row.centre;
    const double x2 = pair ? normal(i + 1) : 0;
    const double w = std::exp(row.tau * normal(i) - sums.shift);
    ScoreSums one{sums.shift, w, {w * x1, w * x2}, {w * x1 * x1, w * x1 * x2, w * x2 * x2}, w * w,
                  {},         {}};
    if (pair) {
      one.q1 = {w * w * x1, w * w * x2};
      one.q2 = {w * w * x1 * x1, w * w * x1 * x2, w * w * x2 * x2};
    }
    sums.s0 += one.s0;
    sums.q0 += one.q0;
    for (std::size_t k = 0; k < 2; ++k) sums.s1[k] += one.s1[k];
    for (std::size_t k = 0; k < 3; ++k) sums.s2[k] += one.s2[k];
    for (std::size_t k = 0; k < 2; ++k) sums.q1[k] += one.q1[k];
    for (std::size_t k = 0; k < 3; ++k) sums.q2[k] += one.q2[k];
  }
  return sums;
}

void fast(Kind kind, const Stream& stream, const std::vector<ScoreRow>& rows, std::int64_t n,
          std::vector<ScoreSums>& out) {
  switch (kind) {
    case Kind::pair_float: return pair_sums_float(stream, rows, n, out);
    case Kind::pair_double: return pair_sums(stream, rows, n, out);
    case Kind::single_double: return single_sums(stream, rows, n, out);
  }
}

// Relative to s0 and q0: both sets of sums have weights of one sign, coordinates of size < 16.
void expect_equal(const ScoreSums& got, const ScoreSums& want, double tolerance) {
  const double scale = std::exp(got.shift - want.shift);
  const double s0 = want.s0;
  const double q0 = want.q0;
  EXPECT_TRUE(close(got.s0 * scale, s0, tolerance));
  EXPECT_TRUE(close(got.q0 * scale * scale, q0, 2 * tolerance));
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_TRUE(close(got.s1[k] * scale, want.s1[k], 8 * tolerance, s0));
    EXPECT_TRUE(close(got.q1[k] * scale * scale, want.q1[k], 16 * tolerance, q0));
  }
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_TRUE(close(got.s2[k] * scale, want.s2[k], 64 * tolerance, s0));
    EXPECT_TRUE(close(got.q2[k] * scale * scale, want.q2[k], 128 * tolerance, q0));
  }
}

class ScoreSumsTwin : public ::testing::TestWithParam<Kind> {};

TEST_P(ScoreSumsTwin, EqualsThePlainSumsOnEveryTarget) {
  const Kind kind = GetParam();
  const bool single_precision = kind == Kind::pair_float;
  const Stream stream(21, 3);
  std::vector<ScoreRow> rows;
  for (const double tau : {0.0, 0.1, 1.0, 2.5, 4.99, 0.3, 1.7, 3.0, 5.5, 20.0, 300.0, 0.0, 39.0}) {
    rows.push_back({std::uint64_t{1} << 34 | rows.size() << 10, tau, score_centre(tau, 100)});
  }
  const std::vector<std::string> targets = simd::supported_targets();
  for (const std::string& target : targets) {
    simd::force_target(target);
    SCOPED_TRACE(target);
    for (const std::int64_t n : {1L, 2L, 3L, 4L, 5L, 63L, 128L, 129L, 257L, 700L}) {
      SCOPED_TRACE(n);
      std::vector<ScoreSums> out(rows.size());
      fast(kind, stream, rows, n, out);
      for (std::size_t j = 0; j < rows.size(); ++j) {
        SCOPED_TRACE(rows[j].tau);
        // A float score of size tau * 5 carries an error of tau * 5 * 6e-8 into the weight.
        const double tolerance =
            single_precision ? 1e-6 + 2e-6 * rows[j].tau : 1e-13 + 1e-14 * rows[j].tau;
        expect_equal(out[j], slow(kind, stream, rows[j], n), tolerance);
      }
    }
  }
  simd::force_target("");
}

TEST_P(ScoreSumsTwin, RowsDoNotSeeEachOther) {
  const Stream stream(22);
  std::vector<ScoreRow> rows;
  for (std::uint64_t j = 0; j < 19; ++j)
    rows.push_back({1000 * j, 0.25 * static_cast<double>(j), 0.1});
  std::vector<ScoreSums> all(rows.size());
  fast(GetParam(), stream, rows, 333, all);
  for (std::size_t j = 0; j < 16; ++j) {  // tau < 5: the same path alone and in company
    std::vector<ScoreSums> alone(1);
    fast(GetParam(), stream, {rows[j]}, 333, alone);
    EXPECT_EQ(alone[0].s2, all[j].s2);
    EXPECT_EQ(alone[0].q0, all[j].q0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScoreSumsTwin,
                         ::testing::Values(Kind::pair_float, Kind::pair_double,
                                           Kind::single_double));

// The float runs, by what the sums show of them: the law of a pair (moments, E e^{tau g}), and
// independence along a run and between neighbouring runs (variance and covariance of row sums).
// 4000 rows of 1000 tokens.
TEST(ScoreSums, FloatRunsAreIndependentStandardNormals) {
  constexpr std::int64_t kTokens = 1000;
  constexpr std::size_t kRows = 4000;
  const double n = kTokens * static_cast<double>(kRows);
  const auto rows_at = [](double tau) {
    std::vector<ScoreRow> rows;
    for (std::size_t j = 0; j < kRows; ++j) rows.push_back({std::uint64_t{j} << 40, tau, 0});
    std::vector<ScoreSums> out(kRows);
    pair_sums_float(Stream(24), rows, kTokens, out);
    return out;
  };
  const auto agrees = [](double sum, double mean, double variance) {
    return std::abs(sum - mean) < testing::kSigmas * std::sqrt(variance);
  };
  double g1 = 0;
  double g2 = 0;
  double g11 = 0;
  double g12 = 0;
  double g22 = 0;
  double row11 = 0;
  double row22 = 0;
  double row12 = 0;
  double neighbours = 0;
  const std::vector<ScoreSums> flat = rows_at(0);
  for (std::size_t j = 0; j < kRows; ++j) {
    const ScoreSums& s = flat[j];
    g1 += s.s1[0];
    g2 += s.s1[1];
    g11 += s.s2[0];
    g12 += s.s2[1];
    g22 += s.s2[2];
    row11 += s.s1[0] * s.s1[0];
    row22 += s.s1[1] * s.s1[1];
    row12 += s.s1[0] * s.s1[1];
    neighbours += s.s1[0] * flat[(j + 1) % kRows].s1[0] + s.s1[1] * flat[(j + 1) % kRows].s1[1];
  }
  EXPECT_TRUE(agrees(g1, 0, n));
  EXPECT_TRUE(agrees(g2, 0, n));
  EXPECT_TRUE(agrees(g11, n, 2 * n));
  EXPECT_TRUE(agrees(g22, n, 2 * n));
  EXPECT_TRUE(agrees(g12, 0, n));
  EXPECT_TRUE(agrees(row11, n, 2 * n * kTokens));  // a row sum is N(0, kTokens)
  EXPECT_TRUE(agrees(row22, n, 2 * n * kTokens));
  EXPECT_TRUE(agrees(row12, 0, n * kTokens));
  EXPECT_TRUE(agrees(neighbours, 0, 2 * n * kTokens));
  for (const double tau : {0.5, 1.0, 1.5}) {
    double weights = 0;
    for (const ScoreSums& s : rows_at(tau)) weights += s.s0;
    const double mgf = std::exp(tau * tau / 2);
    EXPECT_TRUE(agrees(weights, n * mgf, n * (std::pow(mgf, 4) - mgf * mgf))) << tau;
  }
}

TEST(ScoreSums, MergeIsAMonoid) {
  const Stream stream(23);
  const std::vector<ScoreRow> rows = {{0, 60, 3}, {500, 60, 3}};
  std::vector<ScoreSums> parts(2);
  pair_sums(stream, rows, 500, parts);
  std::vector<ScoreSums> whole(1);
  pair_sums(stream, std::vector<ScoreRow>{rows[0]}, 1000, whole);
  ScoreSums merged;
  merged.merge(ScoreSums());
  EXPECT_EQ(merged.s0, 0);
  merged.merge(parts[0]);
  merged.merge(ScoreSums());
  EXPECT_EQ(merged.s0, parts[0].s0);
  merged.merge(parts[1]);
  expect_equal(merged, whole[0], 1e-13);
}

}  // namespace
}  // namespace esscher
