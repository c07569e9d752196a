// The scores of a head against its length: gap counting by brute force, forecasts on keys that keep
// the promise and on keys that break it.
#include "esscher/heads/score_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/heads/head_scores.h"
#include "esscher/heads/load.h"
#include "esscher/random/stream.h"
#include "esscher/scaling/scaling.h"
#include "tests/testing.h"

namespace esscher {
namespace {

Vector normal_scores(std::uint64_t id, Index n, double tau) {
  Vector s(n);
  Stream(11).split(id).fill_normal(0, {s.data(), static_cast<std::size_t>(n)});
  return tau * s;
}

std::vector<Vector> many_scores(Index n, double tau) {
  std::vector<Vector> out;
  for (std::uint64_t i = 0; i < 9; ++i) out.push_back(normal_scores(i, n, tau));
  return out;
}

TEST(GapScale, IsTheLargestRatioOverAllGaps) {
  const Vector s = normal_scores(1, 200, 1.3);
  double best = 0;
  for (double t = 1e-3; t < 12; t += 1e-3) {
    const auto near =
        std::count_if(s.begin(), s.end(), [&](double x) { return s.maxCoeff() - x <= t; });
    best = std::max(best, std::log(static_cast<double>(near)) / t);
  }
  EXPECT_NEAR(gap_scale(s), best, 0.01 * best);
  EXPECT_GE(gap_scale(s), best);
  EXPECT_EQ(gap_scale(Vector{{1.0}}), 0);
  EXPECT_TRUE(std::isinf(gap_scale(Vector{{1.0, 1.0, 0.0}})));
  EXPECT_NEAR(gap_scale(2 * s), gap_scale(s) / 2, 1e-12);
}

// A factor well above Gamma concentrates the weights on the largest score, well below merges them.
TEST(GapScale, SeparatesConcentratedFromMergedWeights) {
  const Vector s = normal_scores(2, 500, 1);
  const auto top = [&](double f) { return 1 / (f * (s.array() - s.maxCoeff())).exp().sum(); };
  EXPECT_GT(top(8 * gap_scale(s)), 0.95);
  EXPECT_LT(top(gap_scale(s) / 8), 0.02);
}

TEST(ScoreScale, ForecastsGaussianScores) {
  // At deviation 1 the sums of e^{2s} of 4000 keys would still fluctuate by 12 %; here by 2 %.
  const auto found = score_scale(many_scores(4000, 0.5));
  ASSERT_TRUE(found && found->test);
  EXPECT_NEAR(found->c, 0.5 / std::sqrt(std::log(4000.0)), 0.01);
  EXPECT_EQ(found->phase, Phase::averaging);
  ASSERT_EQ(found->forecast.size(), 3U);
  // ESS = n e^{-tau^2} in the averaging phase.
  for (const ForecastRow& row : found->forecast) {
    EXPECT_NEAR(row.ess / (row.n * std::exp(-0.25)), 1, 0.1) << row.n;
    EXPECT_NEAR(row.ess_gaussian / row.ess, 1, 0.1) << row.n;
    EXPECT_NEAR(row.needle_gaussian / row.needle, 1, 0.1) << row.n;
    ASSERT_TRUE(row.factor);
    EXPECT_GT(*row.factor, 1);
  }
  EXPECT_LT(found->forecast[0].factor, found->forecast[1].factor);
  EXPECT_GT(found->forecast[0].needle, found->forecast[2].needle);
  EXPECT_EQ(found->test->to, 4000);
  EXPECT_EQ(found->test->from, 2000);
  EXPECT_NEAR(found->test->ess_forecast / found->test->ess, 1, 0.1);
  EXPECT_NEAR(found->test->needle_forecast / found->test->needle, 1, 0.1);
  EXPECT_EQ(found->lengths.back().n, 4000);
  EXPECT_NEAR(found->lengths.back().tau, 0.5, 0.02);
}

// Scores whose second half is another law: the forecast must miss, and the test must show it.
TEST(ScoreScale, TheTestShowsABrokenForecast) {
  std::vector<Vector> scores = many_scores(2000, 0.5);
  for (Vector& s : scores) s.tail(1000) *= 6;
  const auto found = score_scale(scores);
  ASSERT_TRUE(found && found->test);
  EXPECT_GT(found->test->ess_forecast, 3 * found->test->ess);
  EXPECT_GT(found->test->needle_forecast, 3 * found->test->needle);
}

// A shift of the later scores by three deviations of the first is the drift, and the text says so.
TEST(ScoreScale, DriftIsTheMoveOfTheMean) {
  std::vector<Vector> scores = many_scores(2000, 0.5);
  const auto still = score_scale(scores);
  ASSERT_TRUE(still && still->test && still->test->drift);
  EXPECT_NEAR(*still->test->drift, 0, 0.15);
  EXPECT_EQ(drift_text(*still->test), "");
  for (Vector& s : scores) s.tail(1000).array() += 3 * 0.5;
  const auto moved = score_scale(scores);
  EXPECT_NEAR(*moved->test->drift, 3, 0.3);
  // Half of the keys weigh e^{3/2} times as much.
  EXPECT_NEAR(moved->test->needle_forecast / moved->test->needle, (1 + std::exp(1.5)) / 2, 0.2);
  EXPECT_THAT(drift_text(*moved->test), ::testing::HasSubstr(" deviations higher"));
  for (Vector& s : scores) s.tail(1000).array() -= 6 * 0.5;
  EXPECT_THAT(drift_text(*score_scale(scores)->test), ::testing::HasSubstr(" deviations lower"));
  EXPECT_EQ(drift_text({}), "");
}

TEST(ScoreScale, LeavesOutWhatDoesNotVary) {
  EXPECT_FALSE(score_scale({}));
  EXPECT_FALSE(score_scale({Vector::Constant(50, 2.0)}));
  const auto small = score_scale({Vector{{0.0, 1.0, 2.0, 0.5}}});
  ASSERT_TRUE(small);
  EXPECT_FALSE(small->test);
}

// A head as a score law: deviation and exact weights at its own length against its own softmax.
TEST(HeadScores, AreThoseOfTheHead) {
  const auto heads =
      load_heads(std::string(testing::source_dir()) + "/tests/data/sample-heads.safetensors");
  const Head& head = heads[2];
  const Index query = head.n_queries - 1;
  const ScoreModel model = head_scores(head, query);
  const Vector s =
      head.K(0, head.prompt_end(query)) * (head.scale * head.Q(query, 1).row(0).transpose());
  const double tau = std::sqrt((s.array() - s.mean()).square().mean());
  EXPECT_NEAR(model.deviation(1), tau, 1e-9 * tau);
  EXPECT_NEAR(model.mean(1), s.mean(), 1e-9);
  EXPECT_NEAR(model.log_mgf(1, 1), std::log(s.array().exp().mean()), 1e-9);
  // Prompts of one token put all weight on it; immense ones average over the keys there are.
  const double limit = (2 * s.array()).exp().mean() / std::pow(s.array().exp().mean(), 2);
  EXPECT_NEAR(model.weights(1, 1e9).H * 1e9 / limit, 1, 1e-4);
  const ScalingRow row = scaling_row(model, Schedule({}), 1000, {.gap = 3, .draws = 50});
  EXPECT_TRUE(row.error);
  EXPECT_TRUE(row.H_median);
  EXPECT_THROW((void)head_scores(head, head.n_queries), ArgumentError);
}

TEST(ScoreScale, SaysNothingOfScoresThatLeaveOneKey) {
  EXPECT_FALSE(score_scale({1e3 * Vector::LinSpaced(64, -1, 1)}));
  EXPECT_TRUE(score_scale({10 * Vector::LinSpaced(64, -1, 1)}));
}

}  // namespace
}  // namespace esscher
