// The verdicts of `esscher paper --which temperature`, from numbers alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "esscher/paper/temperature.h"
#include "tests/testing.h"

namespace esscher::paper {
namespace {

using ::testing::HasSubstr;

// Every figure notices a factor of 1.2, every condition and every control can fail.
void expect_sharp(const Checks& checks) {
  EXPECT_EQ(trouble_of(checks), "");
  EXPECT_FALSE(checks.controls.empty());
  for (std::size_t i = 0; i < checks.figures.size(); ++i) {
    EXPECT_LE(checks.figures[i].noticed(), kNoticed) << checks.figures[i].what;
    for (const double factor : {1.2001, 1 / 1.2001, std::nan("")}) {
      Checks planted = checks;
      planted.figures[i] = checks.figures[i].planted(factor);
      EXPECT_THAT(trouble_of(planted), HasSubstr(checks.figures[i].what)) << factor;
    }
  }
  for (std::size_t i = 0; i < checks.conditions.size(); ++i) {
    Checks planted = checks;
    planted.conditions[i].holds = false;
    EXPECT_EQ(trouble_of(planted), checks.conditions[i].what);
  }
  for (std::size_t i = 0; i < checks.controls.size(); ++i) {
    Checks planted = checks;
    planted.controls[i].value = planted.controls[i].expected;
    EXPECT_THAT(trouble_of(planted), HasSubstr("the check cannot fail"));
  }
}

TEST(TemperatureVerdicts, Regimes) {
  std::vector<RegimeNumbers> good = {{.c = 0.4,
                                      .regime = "averaging",
                                      .decades = 250,
                                      .ratio = 1.001,
                                      .other = 1e9,
                                      .sampled_ratio = 1.002,
                                      .sampled_error = 0.001}};
  expect_sharp(regime_checks(good));
  EXPECT_EQ(judge_regimes(good).status, VerdictStatus::holds);
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
  expect_sharp(golden_checks(good));
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
  expect_sharp(best_checks(good));
  EXPECT_EQ(judge_best_temperature(good).status, VerdictStatus::holds);
  good[0].factor[0] = 1.02;
  EXPECT_THAT(judge_best_temperature(good).text, HasSubstr("Fails"));
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
