// Every verdict, from numbers alone: good numbers hold, and each number that is made bad turns the
// verdict to "fails" with a reason that names it. Thresholds are tried on both sides.
#include "esscher/paper/verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace esscher::paper {
namespace {

using ::testing::HasSubstr;

const double kNaN = std::nan("");

void expect_fails(const Verdict& verdict, const std::string& reason) {
  EXPECT_EQ(verdict.status, VerdictStatus::fails) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("Fails: "));
  EXPECT_THAT(verdict.text, HasSubstr(reason));
}

// ---- Lemma 2.1

LemmaNumbers lemma() {
  return {.cases = 9,
          .worst_error = kLemmaError,
          .worst_shape = kLemmaShape,
          .coin_gap = 2.005,
          .coin_kurtosis = -1.373};
}

TEST(LemmaVerdict, HoldsUpToItsTolerances) {
  const Verdict verdict = judge_lemma_2_1(lemma());
  EXPECT_EQ(verdict.status, VerdictStatus::holds);
  EXPECT_THAT(verdict.text, HasSubstr("over 9 Gaussians"));
  EXPECT_THAT(verdict.text, HasSubstr("gap of 2.005 and kurtosis -1.373"));
}

TEST(LemmaVerdict, FailsBeyondThem) {
  LemmaNumbers n = lemma();
  n.worst_error = 1.01 * kLemmaError;
  expect_fails(judge_lemma_2_1(n), "largest relative error is 1.01e-11 over 9");
  n.worst_error = kNaN;
  expect_fails(judge_lemma_2_1(n), "largest relative error is nan");
  n = lemma();
  n.worst_shape = 1.01 * kLemmaShape;
  expect_fails(judge_lemma_2_1(n), "skewness or excess kurtosis of 1.01e-09");
  n = lemma();
  n.cases = 0;
  expect_fails(judge_lemma_2_1(n), "no Gaussian was tested");
}

TEST(LemmaVerdict, FailsIfTheCounterExampleLooksLinear) {
  LemmaNumbers n = lemma();
  n.coin_gap = kLemmaCoin / 2;
  expect_fails(judge_lemma_2_1(n), "the check cannot fail");
  n = lemma();
  n.coin_kurtosis = -kLemmaCoin / 2;
  expect_fails(judge_lemma_2_1(n), "the check cannot fail");
  n.coin_kurtosis = -2 * kLemmaCoin;
  EXPECT_EQ(judge_lemma_2_1(n).status, VerdictStatus::holds);
}

// ---- Almost-sure convergence

Verdict growing(double worst) {
  const GrowingPrompts laws[] = {
      {.tokens = "Gaussian", .last = 0.01, .clt = 0.02, .worst = 1.8, .worst_L = 1778},
      {.tokens = "sphere", .last = 0.04, .clt = 0.02, .worst = worst, .worst_L = 3162}};
  return judge_almost_sure(laws, 5, 10000000);
}

TEST(AlmostSureVerdict, AllowsSixDeviations) {
  const Verdict verdict = growing(kGrowingDeviations);
  EXPECT_EQ(verdict.status, VerdictStatus::holds);
  EXPECT_THAT(verdict.text, HasSubstr("5 × 2 prompts"));
  EXPECT_THAT(verdict.text, HasSubstr("at L = 1e7 the largest error is 0.04"));
  expect_fails(growing(6.01), "for sphere tokens at L = 3162 the error is 6.01 deviations");
  expect_fails(growing(kNaN), "for sphere tokens");
  expect_fails(judge_almost_sure({}, 5, 10), "no prompt was read");
}

// ---- Propositions 3.1 and 3.4

CommonFit good_fit() {
  return {.c1 = 2.6, .c2 = 0.9, .fit_end = 10000, .worst_ratio = 1, .worst_at = "σ = 2, L = 1e8"};
}

Prop31Numbers prop31() {
  return {.fit = good_fit(),
          .constant_error = kConstantError,
          .constant_at = "σ = 1",
          .first = 2.266,
          .known = {{.sigma = 0.9,
                     .quantity = "D at L = 10",
                     .expected = 0.2,
                     .relative = 0.01,
                     .measured = 0.2019}}};
}

TEST(Prop31Verdict, HoldsWithItsConstants) {
  const Verdict verdict = judge_prop_3_1(prop31());
  EXPECT_EQ(verdict.status, VerdictStatus::holds_fitted);
  EXPECT_THAT(verdict.text, HasSubstr("c₁ = 2.6 and c₂ = 0.9"));
  EXPECT_THAT(verdict.text, HasSubstr("fitted on L ≤ 1e4"));
}

TEST(Prop31Verdict, FailsWhereANumberDoes) {
  Prop31Numbers n = prop31();
  n.constant_error = 1.01 * kConstantError;
  expect_fails(judge_prop_3_1(n), "misses its closed-form limit by 1.01 % (σ = 1)");
  n.constant_error = kNaN;
  expect_fails(judge_prop_3_1(n), "misses its closed-form limit");
  n = prop31();
  n.fit.worst_ratio = 1.001;
  expect_fails(judge_prop_3_1(n), "exceeds the bound by a factor 1.001 at σ = 2, L = 1e8");
  n = prop31();
  n.fit.c2 = 0;
  expect_fails(judge_prop_3_1(n), "D(L) does not fall");
}

TEST(Prop31Verdict, KnownAnswersAreTwoSided) {
  for (const double measured : {0.1979, 0.2021, -0.2, kNaN}) {
    Prop31Numbers n = prop31();
    n.known[0].measured = measured;
    expect_fails(judge_prop_3_1(n), "at σ = 0.9 the D at L = 10 is");
  }
  Prop31Numbers n = prop31();
  n.known[0].measured = 0.1981;
  EXPECT_EQ(judge_prop_3_1(n).status, VerdictStatus::holds_fitted);
}

Prop34Numbers prop34() {
  return {.moments = 8,
          .fit_v = good_fit(),
          .fit_u = good_fit(),
          .constant_error = kConstantError,
          .constant_at = "gradient in U"};
}

TEST(Prop34Verdict, JudgesMomentsConstantsAndBothBounds) {
  EXPECT_EQ(judge_prop_3_4(prop34()).status, VerdictStatus::holds_fitted);
  Prop34Numbers n = prop34();
  n.moments = 0;
  expect_fails(judge_prop_3_4(n), "no tilted moment");
  n = prop34();
  n.infinite_moment = "p=8 q=8, heavy tokens";
  expect_fails(judge_prop_3_4(n), "is not finite (p=8 q=8, heavy tokens)");
  n = prop34();
  n.constant_error = 1.01 * kConstantError;
  expect_fails(judge_prop_3_4(n), "L·D(L) of the gradient in U misses");
  n = prop34();
  n.fit_v.worst_ratio = 1.5;
  expect_fails(judge_prop_3_4(n), "the gradient in V exceeds the bound by 1.5");
  n = prop34();
  n.fit_u.worst_ratio = kNaN;
  expect_fails(judge_prop_3_4(n), "the gradient in U exceeds the bound by nan");
}

// A curve D = c / L^rate of one setting, to try the common fit.
Decay power_curve(double sigma, double rate, double c = 1) {
  Decay curve{.setting = "power", .metric = Metric::output, .sigma = sigma};
  for (std::int64_t L = 1; L <= 100000000; L *= 10) {
    curve.L.push_back(L);
    curve.D.push_back(c / std::pow(static_cast<double>(L), rate));
  }
  curve.low = curve.high = curve.D;
  return curve;
}

TEST(CommonFitTest, FindsTheSlowestDecayOverSigma) {
  const std::vector<Decay> curves{power_curve(1, 1), power_curve(2, 0.3)};
  const CommonFit fit = fit_common(curves, Metric::output);
  EXPECT_EQ(fit.fit_end, 10000);
  EXPECT_NEAR(fit.c2, 1, 1e-12);  // min(1 * 1, 0.3 * 4)
  EXPECT_TRUE(fit.holds());
}

TEST(CommonFitTest, ACurveThatStopsFallingBreaksTheBound) {
  std::vector<Decay> curves{power_curve(1, 1)};
  for (std::size_t i = 5; i < curves[0].D.size(); ++i) curves[0].D[i] = curves[0].D[4];
  curves[0].low = curves[0].D;
  EXPECT_FALSE(fit_common(curves, Metric::output).holds());
  curves[0] = power_curve(1, 1);
  curves[0].low[7] = kNaN;
  const CommonFit fit = fit_common(curves, Metric::output);
  EXPECT_TRUE(std::isnan(fit.worst_ratio)) << "a later number must not hide a NaN";
  EXPECT_FALSE(fit.holds());
}

// ---- Stability

GapCurve gaps(Features features, double first, double first_error, double last, double last_error) {
  return {.features = features,
          .sup = {{.L = 10, .gap = first, .std_error = first_error, .t = 1, .gradient = 1},
                  {.L = 100, .gap = last, .std_error = last_error, .t = 1, .gradient = 1}}};
}

TEST(StabilityVerdict, HoldsWhenEveryGapFalls) {
  const GapCurve curves[] = {gaps(Features::gaussian, 0.6, 0, 0.06, 0),
                             gaps(Features::sphere, 0.5, 0.03, 0.05, 0.04)};
  const Verdict verdict = judge_stability(curves);
  EXPECT_EQ(verdict.status, VerdictStatus::holds_fitted) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("exponents 1 (gaussian), 1 (sphere); at L = 100 it is 6 %"));
}

TEST(StabilityVerdict, SaysThatAFallIsNotSignificant) {
  const GapCurve noisy[] = {gaps(Features::gaussian, 0.6, 0, 0.06, 0),
                            gaps(Features::rademacher, 0.303, 0.0795, 0.0468, 0.0134)};
  expect_fails(judge_stability(noisy),
               "rademacher features: the gap is 0.303 at L = 10 and 0.0468 at L = 100, but this "
               "fall of 0.2562 ± 0.08 is not significant (less than 4 standard errors)");
  // The fall is 4.01 or 3.99 standard errors.
  const GapCurve enough[] = {gaps(Features::sphere, 1, 0.9 / 4.01, 0.1, 0)};
  EXPECT_EQ(judge_stability(enough).status, VerdictStatus::holds_fitted);
  const GapCurve little[] = {gaps(Features::sphere, 1, 0.9 / 3.99, 0.1, 0)};
  expect_fails(judge_stability(little), "not significant");
}

TEST(StabilityVerdict, FailsWhenAGapStaysOrRises) {
  const GapCurve half[] = {gaps(Features::gaussian, 0.6, 0, 0.31, 0)};
  expect_fails(judge_stability(half), "falls too little");
  const GapCurve rising[] = {gaps(Features::gaussian, 0.6, 0, 0.7, 0)};
  expect_fails(judge_stability(rising), "does not fall");
  const GapCurve unknown[] = {gaps(Features::gaussian, 0.6, 0, kNaN, 0)};
  expect_fails(judge_stability(unknown), "does not fall");
  expect_fails(judge_stability({}), "no gap was measured");
}

// ---- Theorem 4.3

Verdict excess(double first, double last, double error) {
  const TaskExcess tasks[] = {{.task = "noisy labels",
                               .at = {{.L = 10, .value = first, .std_error = 0.01},
                                      {.L = 100, .value = last, .std_error = error}}}};
  return judge_theorem_4_3(tasks);
}

TEST(Theorem43Verdict, IsTwoSided) {
  const Verdict good = excess(0.5, 0.1, 0.001);
  EXPECT_EQ(good.status, VerdictStatus::holds) << good.text;
  EXPECT_THAT(good.text, HasSubstr("0.5 ± 0.01 at L = 10, 0.1 ± 0.001 at L = 100"));
  expect_fails(excess(0.5, 0.101, 0.001), "at L = 100 the limiting risk is still 0.101 above");
  EXPECT_EQ(excess(0.5, 0.101, 0.03).status, VerdictStatus::holds) << "within four errors";
  EXPECT_EQ(excess(0.5, -0.005, 0.001).status, VerdictStatus::holds) << "within six errors";
  expect_fails(excess(0.5, -0.007, 0.001), "0.007 below that of the infinite prompt");
  expect_fails(excess(-0.5, -0.1, 0.001), "below that of the infinite prompt");
  expect_fails(excess(0.5, kNaN, 0.001), "nan above");
  expect_fails(judge_theorem_4_3({}), "no task");
}

// ---- Theorem 5.1

Theorem51Numbers theorem51() {
  return {.bayes = 0,
          .reference_gap = 1e-8,
          .reference_error = 1e-4,
          .trained = {{.L = 10, .risk = 0.4, .std_error = 0.01, .bayes = 0},
                      {.L = 100, .risk = 0.07, .std_error = 0.001, .bayes = 0},
                      {.L = 1000, .risk = 0.007, .std_error = 0.001, .bayes = 0}},
          .lengths = {{.eps = 0.1, .length = 67}, {.eps = 0.5, .length = 8}},
          .shortest = 8};
}

TEST(Theorem51Verdict, HoldsAndSaysHowLong) {
  const Verdict verdict = judge_theorem_5_1(theorem51());
  EXPECT_EQ(verdict.status, VerdictStatus::holds_fitted) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("like L^−1: L(0.1) = 67, L(0.5) ≤ 8."));
}

TEST(Theorem51Verdict, FailsWhereANumberDoes) {
  Theorem51Numbers n = theorem51();
  n.reference_gap = 1.1e-8;
  expect_fails(judge_theorem_5_1(n), "the infinite-prompt flow ends 1.1e-08 above");
  n = theorem51();
  n.reference_error = 1.1e-4;
  expect_fails(judge_theorem_5_1(n), "parameters 0.00011 from the closed form");
  n = theorem51();
  n.trained[2].risk = 0.041;
  expect_fails(judge_theorem_5_1(n), "the limiting risk is 0.041 above Bayes at L = 1000");
  n = theorem51();
  n.trained[1].bayes = 0.0761;
  expect_fails(judge_theorem_5_1(n), "0.07 at L = 100 is below the Bayes risk 0.0761");
  n.trained[1].bayes = 0.0759;
  EXPECT_EQ(judge_theorem_5_1(n).status, VerdictStatus::holds_fitted) << "within six errors";
  n = theorem51();
  n.lengths[0].length.reset();
  expect_fails(judge_theorem_5_1(n), "no L(ε) below 1e6 for ε = 0.1");
}

// ---- Transfer

std::vector<LinearAndSoftmax> transfer_numbers() {
  return {{.L = 10, .linear = 0.2, .closed = 0.2, .limit_error = 1e-5, .softmax = 0.4},
          {.L = 1000, .linear = 0.003, .closed = 0.003, .limit_error = 1e-9, .softmax = 0.01}};
}

TEST(TransferVerdict, ComparesWithTheClosedFormAndWithSoftmax) {
  EXPECT_EQ(judge_transfer(transfer_numbers()).status, VerdictStatus::holds);
  std::vector<LinearAndSoftmax> n = transfer_numbers();
  n[0].limit_error = 1.1e-5;
  expect_fails(judge_transfer(n), "linear attention at L = 10 ends 0 (relative)");
  for (const double factor : {1 - 2e-6, 1 + 2e-6}) {
    n = transfer_numbers();
    n[1].linear *= factor;
    expect_fails(judge_transfer(n), "linear attention at L = 1000 ends 2e-06 (relative)");
  }
  for (const double softmax : {0.024, -0.018}) {  // the gap is 0.021, more than a tenth of 0.2
    n = transfer_numbers();
    n[1].softmax = softmax;
    expect_fails(judge_transfer(n), "do not approach each other: gap 0.2");
  }
  expect_fails(judge_transfer({}), "no flow");
}

// ---- The experiment

ExperimentNumbers trained() {
  const std::vector<TestError> at{
      {.L = 10, .mse = 0.6, .std_error = 0.001, .bayes = 0.3, .bayes_error = 0},
      {.L = 1000, .mse = 0.2, .std_error = 0.001, .bayes = 0.1, .bayes_error = 0}};
  return {.preset = "as intended", .softmax = at, .linear = at, .infinite = 0.18};
}

Verdict judged(const std::function<void(ExperimentNumbers&)>& spoil) {
  ExperimentNumbers n = trained();
  spoil(n);
  return judge_experiment(std::span(&n, 1));
}

TEST(ExperimentVerdict, HoldsOrSaysWhatFailed) {
  const Verdict good = judged([](ExperimentNumbers&) {});
  EXPECT_EQ(good.status, VerdictStatus::holds) << good.text;
  EXPECT_THAT(good.text, HasSubstr("as intended: at L = 1000 softmax 0.2, linear 0.2, Bayes 0.1"));
  expect_fails(judged([](ExperimentNumbers& n) { n.linear[1].diverged = true; }),
               "as intended: linear at L = 1000 diverged");
  expect_fails(judged([](ExperimentNumbers& n) { n.softmax[1].bayes = 0.207; }),
               "softmax at L = 1000 is better than Bayes");
  EXPECT_EQ(judged([](ExperimentNumbers& n) { n.softmax[1].bayes = 0.205; }).status,
            VerdictStatus::holds)
      << "within six errors";
  expect_fails(judged([](ExperimentNumbers& n) { n.linear[1].mse = 0.4; }),
               "test error of linear does not approach that of the infinite prompt (0.6");
  expect_fails(judged([](ExperimentNumbers& n) { n.softmax[0].mse = kNaN; }), "softmax at L = 10");
  expect_fails(judged([](ExperimentNumbers& n) {
                 n.infinite = 0.76;
                 n.softmax[0].mse = n.linear[0].mse = 2;
                 n.softmax[1].mse = n.linear[1].mse = 0.8;
               }),
               "training at L = ∞ ends at test error 0.76");
  expect_fails(judge_experiment({}), "nothing was trained");
}

}  // namespace
}  // namespace esscher::paper
