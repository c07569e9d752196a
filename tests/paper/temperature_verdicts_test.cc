// The verdicts of `esscher paper --which temperature`, from numbers alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "esscher/paper/temperature.h"
#include "tests/paper/can_fail.h"
#include "tests/testing.h"

namespace esscher::paper {
namespace {

using ::testing::HasSubstr;

TEST(TemperatureVerdicts, Regimes) {
  std::vector<RegimeNumbers> good = {{.c = 0.4,
                                      .regime = "averaging",
                                      .decades = 250,
                                      .ratio = 1.001,
                                      .other = 1e9,
                                      .combined = 0.95,
                                      .sampled_ratio = 1.002,
                                      .sampled_error = 0.001}};
  expect_each_figure_can_fail(regime_checks(good));
  EXPECT_EQ(judge_regimes(good).status, VerdictStatus::holds);
  good[0].combined = 1.09;
  EXPECT_EQ(judge_regimes(good).status, VerdictStatus::fails);
  good[0].combined = 1;
  good[0].ratio = 1.03;
  EXPECT_EQ(judge_regimes(good).status, VerdictStatus::fails);
  EXPECT_EQ(judge_regimes({}).status, VerdictStatus::fails);
}

TEST(TemperatureVerdicts, GoldenRatio) {
  std::vector<GoldenNumbers> good = {{.lambda = 1,
                                      .decades = 250,
                                      .ratio = 1.01,
                                      .exponent = 0.6181,
                                      .gamma = (std::sqrt(5.0) - 1) / 2,
                                      .sampled_ratio = 0.999,
                                      .sampled_error = 0.002}};
  expect_each_figure_can_fail(golden_checks(good));
  EXPECT_THAT(judge_golden(good).text, HasSubstr("0.6181"));
  good[0].exponent = 0.62;
  EXPECT_EQ(judge_golden(good).status, VerdictStatus::fails);
}

TEST(TemperatureVerdicts, BestTemperature) {
  std::vector<BestTemperature> good = {{.d = 1,
                                        .alpha = 0.25,
                                        .L = {10, 10000},
                                        .factor = {0.9102536, 0.9998518},
                                        .error = {1e-7, 1e-9}}};
  expect_each_figure_can_fail(best_checks(good));
  EXPECT_EQ(judge_best_temperature(good).status, VerdictStatus::holds);
  good[0].factor[0] = 1.02;
  EXPECT_THAT(judge_best_temperature(good).text, HasSubstr("Fails"));
}

TEST(TemperatureVerdicts, TheCaptionCountsTheFactorsBelowOne) {
  std::vector<BestTemperature> heads = {{.L = {10, 100}, .factor = {0.9, 0.99}},
                                        {.L = {10}, .factor = {0.8}}};
  EXPECT_THAT(best_factor_caption(heads), HasSubstr("all 3 lie below the 1"));
  heads[1].factor[0] = 1.01;
  EXPECT_THAT(best_factor_caption(heads), HasSubstr("2 of 3 lie below the 1"));
}

// "More where prompts are short or features many" is judged point by point.
TEST(TemperatureVerdicts, BestTemperatureFallsWithFeaturesAndRisesWithLength) {
  const auto broken = [](const std::vector<BestTemperature>& heads) {
    std::string out;
    for (const Condition& c : best_checks(heads).conditions) out += c.holds ? "" : c.what + ";";
    return out;
  };
  std::vector<BestTemperature> heads = {
      {.d = 1, .alpha = 0.5, .L = {10, 100}, .factor = {0.953, 0.980}, .error = {0, 0}},
      {.d = 2, .alpha = 0.5, .L = {10, 100}, .factor = {0.852, 0.958}, .error = {0, 0}}};
  EXPECT_EQ(broken(heads), "");
  heads[1].factor[1] = 0.981;
  EXPECT_THAT(broken(heads), HasSubstr("of d = 2, α = 0.5 at L = 100 is not below that of d = 1"));
  heads[1].factor = {0.852, 0.850};
  EXPECT_THAT(broken(heads), HasSubstr("does not fall from L = 10 to L = 100"));
}

// E[e^{a^2 x^2} (a^2 x^4 + x^2)] by a sum, d = 1.
TEST(TemperatureVerdicts, SlopeOfTheBestFactorIsAnAverage) {
  const double a = 0.3;
  double sum = 0, total = 0;
  for (double x = -12; x < 12; x += 1e-3) {
    const double w = std::exp(-0.5 * x * x);
    total += w;
    sum += w * std::exp(a * a * x * x) * (a * a * x * x * x * x + x * x);
  }
  EXPECT_NEAR(best_factor_slope(1, a), sum / total, 1e-8);
}

}  // namespace
}  // namespace esscher::paper
