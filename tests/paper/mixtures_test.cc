// The verdicts of `paper --which mixtures`, from numbers alone, and the prediction of an exponent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "esscher/paper/mixture_statements.h"
#include "tests/paper/can_fail.h"

namespace esscher::paper {
namespace {

double value_of(std::string_view what, double parameter = 0, std::int64_t L = 0) {
  return independent(what, parameter, L).value;
}

TEST(MixtureVerdicts, Experts) {
  const ExpertNumbers good{.cases = 3, .worst_ratio = 1 + 1e-13, .gaussian_ratio = 1.4};
  expect_each_figure_can_fail(expert_checks(good));
  EXPECT_EQ(judge_experts(good).status, VerdictStatus::holds);
  EXPECT_EQ(judge_experts({}).status, VerdictStatus::fails);
}

ClassificationNumbers good_classes() {
  return {.bayes = value_of("classification bayes"),
          .plus = 1,
          .minus = 1,
          .flat = 1,
          .half = 1.1,
          .saddle = 2.618034,
          .saddle_expected = 2.618034,
          .rate = 0.2,
          .rate_expected = 0.2,
          .early_rate = 0.05,
          .leak_skew = 0.1,
          .conserved = 1,
          .conserved_steps = 1.1};
}

TEST(MixtureVerdicts, Classification) {
  expect_each_figure_can_fail(classification_checks(good_classes()));
  ClassificationNumbers bad = good_classes();
  bad.saddle_norm = 1e-3;
  EXPECT_THAT(judge_classification(bad).text, ::testing::HasSubstr("gradient at zero is not zero"));
}

DenoisingNumbers good_denoising() {
  return {.cases = 3,
          .swapped_ratio = 1.5,
          .bayes = value_of("denoising bayes"),
          .affine = 0.4047,
          .affine_expected = 0.4047,
          .heads = {{0.5, value_of("denoising one head", 0.5), 0.1, true},
                    {1, 1e-14, 0.1, false},
                    {2, value_of("denoising one head", 2), 0.1, true}}};
}

TEST(MixtureVerdicts, DenoisingSaysForWhichRatiosOneHeadIsEnough) {
  expect_each_figure_can_fail(denoising_checks(good_denoising()));
  DenoisingNumbers never = good_denoising();
  never.heads[1].excess = 0.01;
  EXPECT_THAT(judge_denoising(never).text, ::testing::HasSubstr("one head is not enough at γ = ξ"));
  DenoisingNumbers always = good_denoising();
  always.heads.push_back({3, 0, 0.1, false});
  EXPECT_THAT(judge_denoising(always).text, ::testing::HasSubstr("one head is enough at γ/ξ = 3"));
  DenoisingNumbers linear = good_denoising();
  linear.heads[0].affine = 0;
  EXPECT_THAT(judge_denoising(linear).text, ::testing::HasSubstr("an affine map is enough"));
}

TEST(MixtureVerdicts, ClustersAndAdaptation) {
  const double root = 1.25;
  expect_each_figure_can_fail(cluster_checks({.thresholds = {1, 1.0005},
                                              .noisy_threshold = root,
                                              .noisy_expected = root,
                                              .fixed_point = 0.9755,
                                              .fixed_expected = 0.9755}));
  expect_each_figure_can_fail(adapts_checks(
      {.layer = 1, .layer_error = 1e-4, .affine = 2, .affine_error = 1e-4, .swapped = 1.3}));
}

FiniteNumbers good_lengths() {
  FiniteNumbers n{.crossing = value_of("denoising crossing")};
  for (const std::int64_t L :
       {std::int64_t{10}, std::int64_t{1000000000}, std::int64_t{1000000000000}}) {
    n.at.push_back({L, value_of("denoising excess", 0, L), 0});
  }
  n.cool.push_back({10000, value_of("denoising cool factor", 0, 10000),
                    value_of("denoising cool excess", 0, 10000)});
  return n;
}

TEST(MixtureVerdicts, FinitePrompts) {
  expect_each_figure_can_fail(finite_checks(good_lengths()));
  FiniteNumbers hot = good_lengths();
  hot.cool[0].factor = 1.001;
  EXPECT_NE(trouble_of(finite_checks(hot)), "");
}

// Far out the means no longer matter, and the exponent is the golden ratio less one.
TEST(LaplaceExponent, TendsToTheGoldenRatio) {
  const double golden = (std::sqrt(5.0) - 1) / 2;
  EXPECT_NEAR(laplace_exponent(1e4, 0), golden, 1e-7);
  EXPECT_NEAR(laplace_exponent(1e8, 2), golden, 1e-3);
  EXPECT_LT(laplace_exponent(25, 2), laplace_exponent(50, 2));
  EXPECT_LT(laplace_exponent(50, 2), golden);
}

}  // namespace
}  // namespace esscher::paper
