// Every verdict, from numbers alone: good numbers hold; every figure that is multiplied or divided by
// 1.2 turns the verdict to "fails" with a reason that names it; a control that agrees does too.
#include "esscher/paper/verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "esscher/base/error.h"
#include "esscher/paper/experiment.h"
#include "tests/paper/can_fail.h"

namespace esscher::paper {
namespace {

using ::testing::HasSubstr;

const double kNaN = std::nan("");

void expect_fails(const Verdict& verdict, const std::string& reason) {
  EXPECT_EQ(verdict.status, VerdictStatus::fails) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("Fails: "));
  EXPECT_THAT(verdict.text, HasSubstr(reason));
}

// ---- Judged

Judged figure(double value, double error, double tolerance) {
  return {.what = "the risk",
          .value = value,
          .error = error,
          .expected = 2,
          .source = Source::independent,
          .tolerance = tolerance};
}

TEST(JudgedTest, IsTwoSided) {
  EXPECT_TRUE(figure(2.0599, 0.01, 0.005).agrees());  // 0.005 * 2 + 5 * 0.01
  EXPECT_FALSE(figure(2.0601, 0.01, 0.005).agrees());
  EXPECT_TRUE(figure(1.9401, 0.01, 0.005).agrees());
  EXPECT_FALSE(figure(1.9399, 0.01, 0.005).agrees());
  EXPECT_FALSE(figure(-2, 0, 0.1).agrees());
  EXPECT_FALSE(figure(kNaN, 0, 0.1).agrees());
  EXPECT_FALSE(figure(2, kNaN, 0.1).agrees());
}

TEST(JudgedTest, NoticedIsTheSmallestFactorThatFailsBothWays) {
  for (const Judged& j : {figure(2, 0, 0.05), figure(2.05, 0, 0.05), figure(1.93, 0.01, 0.05),
                          figure(2.01, 0.03, 0)}) {
    const double f = j.noticed();
    EXPECT_FALSE(j.planted(f * 1.0001).agrees()) << f;
    EXPECT_FALSE(j.planted(1 / (f * 1.0001)).agrees()) << f;
    EXPECT_TRUE(j.planted(f * 0.9999).agrees() || j.planted(1 / (f * 0.9999)).agrees()) << f;
  }
  EXPECT_EQ(figure(2, 0.4, 0).noticed(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(figure(2, 0, 1).noticed(), std::numeric_limits<double>::infinity());
}

TEST(JudgedTest, TroubleNamesTheFigureAndWhatIsTooBlunt) {
  Checks checks{.figures = {figure(2, 0, 0.01)}, .controls = {figure(3, 0, 0.01)}};
  EXPECT_EQ(trouble_of(checks), "");
  EXPECT_THAT(sharpness(checks), HasSubstr("a factor of 1.011 in the risk would be noticed"));
  Checks two{.figures = {figure(2, 0, 0.01), figure(2, 0, 0.001)}, .controls = checks.controls};
  EXPECT_THAT(sharpness(two), HasSubstr("In all, 2 figures were judged; the bluntest, “the risk”, "
                                        "would show a factor of 1.011 and the others a smaller"));
  expect_each_figure_can_fail(checks);
  checks.figures[0] = figure(2, 0.07, 0);
  EXPECT_THAT(trouble_of(checks), HasSubstr("too uncertain to be judged: only a factor of 1.2"));
  checks.figures[0] = figure(2.1, 0, 0.01);
  EXPECT_THAT(trouble_of(checks),
              HasSubstr("the risk is 2.1 ± 0 instead of 2 (independent value, tolerance 1 %)"));
  checks.figures.clear();
  EXPECT_EQ(trouble_of(checks), "nothing was judged");
  EXPECT_THAT(trouble_of({.figures = {figure(2, 0, 0.01)}}), HasSubstr("no control"));
}

TEST(JudgedTest, MonotoneClaimsAreJudgedPointByPoint) {
  const std::int64_t L[] = {10, 100, 1000};
  const double falls[] = {3, 2, 1}, rises[] = {3, 1, 1.5}, unknown[] = {3, kNaN, 1};
  const auto broken = [&](std::span<const double> y) {
    Checks checks;
    must_fall(checks, "D", L, y);
    std::string out;
    for (const Condition& c : checks.conditions) out += c.holds ? "+" : "-";
    return out;
  };
  EXPECT_EQ(broken(falls), "++");
  EXPECT_EQ(broken(rises), "+-");
  EXPECT_EQ(broken(unknown), "--");
}

TEST(JudgedTest, IndependentValuesAreFoundOrRefused) {
  // D(10) at sigma = 0.9 in dimension one: 0.21955 (theory.md says 0.221, a simulation 0.2191).
  const IndependentValue& known = independent("output d=1", 0.9, 10);
  EXPECT_NEAR(known.value, 0.21955, 5e-6);
  EXPECT_LT(known.error, 1e-8);
  EXPECT_FALSE(has_independent("output d=1", 0.9, 11));
  EXPECT_THROW((void)independent("output d=1", 0.9, 11), ArgumentError);
}

TEST(JudgedTest, ExponentOfAPowerLaw) {
  const Exponent e = exponent_between(10, 3, 0.03, 1000, 0.3, 0.004);
  EXPECT_NEAR(e.value, 0.5, 1e-12);
  EXPECT_NEAR(e.error, std::hypot(0.01, 0.004 / 0.3) / std::log(100.0), 1e-12);
}

// ---- Lemma 2.1

LemmaNumbers lemma() {
  return {.cases = 9,
          .worst_ratio = 1 + kLemmaError / 2,
          .worst_third = 4 - kLemmaShape,
          .worst_fourth = 3 + kLemmaShape,
          .coin_ratio = 0.33,
          .coin_fourth = 1.6};
}

TEST(LemmaVerdict, JudgesOutputsAndTheirMoments) {
  const Verdict verdict = judge_lemma_2_1(lemma());
  EXPECT_EQ(verdict.status, VerdictStatus::holds);
  EXPECT_THAT(verdict.text, HasSubstr("Over 9 Gaussians"));
  expect_each_figure_can_fail(lemma_checks(lemma()));
  LemmaNumbers n = lemma();
  n.worst_ratio = 1 - 1.01 * kLemmaError;
  expect_fails(judge_lemma_2_1(n), "the output of softmax over the closed form");
  n = lemma();
  n.worst_third = 4 + 5 * kLemmaShape;
  expect_fails(judge_lemma_2_1(n), "E(1 + u)³");
  n = lemma();
  n.coin_ratio = 1;
  expect_fails(judge_lemma_2_1(n), "the check cannot fail");
  n = lemma();
  n.cases = 0;
  expect_fails(judge_lemma_2_1(n), "nothing was judged");
}

// ---- Almost-sure convergence

std::vector<GrowingPrompts> growing() {
  const GrowingPrompts law{.tokens = "sphere",
                           .last = 0.01,
                           .clt = 0.02,
                           .worst = 1.8,
                           .worst_L = 1778,
                           .block_ratio = 1.01,
                           .block_error = 0.02,
                           .false_ratio = 30,
                           .false_error = 0.3};
  return {law, law};
}

TEST(AlmostSureVerdict, JudgesBlocksAndAllowsSixDeviations) {
  const Verdict verdict = judge_almost_sure(growing(), 5, 10000000);
  EXPECT_EQ(verdict.status, VerdictStatus::holds) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("5 × 2 growing prompts"));
  expect_each_figure_can_fail(almost_sure_checks(growing()));
  std::vector<GrowingPrompts> n = growing();
  n[1].worst = 6.01;
  expect_fails(judge_almost_sure(n, 5, 10), "for sphere tokens at L = 1778 the error is 6.01");
  n[1].worst = kNaN;
  expect_fails(judge_almost_sure(n, 5, 10), "for sphere tokens");
  n = growing();
  n[0].block_ratio = 0.86;
  expect_fails(judge_almost_sure(n, 5, 10), "the mean square error of sphere blocks");
  expect_fails(judge_almost_sure({}, 5, 10), "nothing was judged");
}

// ---- Propositions 3.1 and 3.4

// Curves that are the independent values, at the lengths that have one.
DecayNumbers decays(Metric metric) {
  DecayNumbers n;
  for (const double sigma : {1.0, 2.0}) {
    Decay c{.setting = sigma == 1 ? "σ = 1" : "σ = 2",
            .metric = metric,
            .sigma = sigma,
            .lambda = sigma * sigma / 4,
            .gamma = sigma == 1 ? 1 : 0.618};
    for (const std::int64_t L :
         {std::int64_t{10}, std::int64_t{1000}, std::int64_t{1000000}, std::int64_t{100000000},
          std::int64_t{10000000000}, std::int64_t{1000000000000}}) {
      c.L.push_back(L);
      c.D.push_back(independent(name(metric), sigma, L).value);
      c.std_error.push_back(0);
    }
    c.low = c.high = c.D;
    c.constant = sigma == 1 ? c.scaled_end() : std::numeric_limits<double>::infinity();
    n.curves.push_back(c);
  }
  return n;
}

TEST(DecayVerdict, JudgesPointsExponentsAndConstants) {
  for (const Metric metric : {Metric::output, Metric::grad_v, Metric::grad_u}) {
    const DecayNumbers n = decays(metric);
    expect_each_figure_can_fail(decay_checks(n));
    EXPECT_GE(decay_checks(n).figures.size(), 15u);
    EXPECT_LE(bluntest(decay_checks(n)).noticed(), 1.15);
  }
  EXPECT_EQ(judge_prop_3_1(decays(Metric::output)).status, VerdictStatus::holds_fitted);
}

// What the old verdict allowed: D beyond 1e6 off by 41 times, gamma never judged.
TEST(DecayVerdict, NoticesALongPromptThatIsSlightlyOff) {
  DecayNumbers n = decays(Metric::output);
  n.curves[1].D.back() *= 1.02;
  expect_fails(judge_prop_3_1(n), "D of σ = 2, L = 1e12");
  n = decays(Metric::output);
  for (std::size_t i = 0; i < 6; ++i) {  // a rate that is off by 3 %
    n.curves[1].D[i] *= std::pow(static_cast<double>(n.curves[1].L[i]), -0.02);
  }
  expect_fails(judge_prop_3_1(n), "D of σ = 2, L = 10 is");
  n = decays(Metric::output);
  n.known = {{.what = "the moment", .value = 855, .expected = 384, .tolerance = 1e-6}};
  expect_fails(judge_prop_3_1(n), "the moment is 855");
}

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

TEST(DecayCaption, NamesTheExponentThatIsFurthestFromItsPrediction) {
  std::vector<Decay> curves{power_curve(1, 1), power_curve(2, 0.5)};
  curves[1].gamma = 0.625;
  EXPECT_THAT(exponent_caption(curves), HasSubstr("at σ² = 4: 0.5 instead of 0.625."));
  curves[0].gamma = 0.75;
  EXPECT_THAT(exponent_caption(curves), HasSubstr("at σ² = 1: 1 instead of 0.75."));
  for (Decay& c : curves) c.engine = Engine::direct;
  EXPECT_THAT(exponent_caption(curves), Not(HasSubstr("instead of")));
}

TEST(DecayCaption, NamesTheCurvesThatWereSimulated) {
  std::vector<Decay> curves{power_curve(1, 1), power_curve(1, 1), power_curve(1, 1)};
  EXPECT_THAT(gradient_caption(curves), ::testing::EndsWith("without sampling."));
  curves[1].setting = curves[2].setting = "±1 tokens";
  curves[1].engine = curves[2].engine = Engine::direct;
  EXPECT_THAT(gradient_caption(curves), ::testing::EndsWith("; simulated: ±1 tokens."));
}

// ---- Stability

GapCurve gaps() {
  GapCurve out{.features = Features::gaussian};
  for (const std::int64_t L : {10, 100, 1000}) {
    for (const double gap : {3.0, 2.0, 0.1}) {  // the last is far below the largest
      const GapPoint g{.L = L,
                       .t = gap,
                       .gap = gap / static_cast<double>(L),
                       .error = 0.01 / static_cast<double>(L),
                       .gradient = 1,
                       .expected = IndependentValue{"gap", gap, L, gap / static_cast<double>(L)}};
      if (gap == 3.0) out.sup.push_back(g);
      out.judged.push_back(g);
    }
  }
  return out;
}

TEST(StabilityVerdict, JudgesEachPointNearTheLargest) {
  const GapCurve curves[] = {gaps()};
  expect_each_figure_can_fail(stability_checks(curves));
  EXPECT_EQ(stability_checks(curves).figures.size(), 6u);
  const Verdict verdict = judge_stability(curves);
  EXPECT_EQ(verdict.status, VerdictStatus::holds) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("0.3 % of the largest gradient"));
}

TEST(StabilityVerdict, FailsWhenOnePointOrTheFallIsWrong) {
  GapCurve wrong = gaps();
  wrong.judged[3].gap *= 1.2;  // H2: 0.0950 where 0.1093 was true
  expect_fails(judge_stability(std::span(&wrong, 1)), "the gap at L = 100, t = 3");
  wrong = gaps();
  wrong.sup[2].gap = 0.04;
  expect_fails(judge_stability(std::span(&wrong, 1)), "does not fall from L = 100 to L = 1000");
  const GapCurve unjudged[] = {gaps(), {.features = Features::sphere, .sup = gaps().sup}};
  expect_fails(judge_stability(unjudged), "spherical features were not judged");
  GapCurve spheres = gaps();
  spheres.features = Features::sphere;
  const GapCurve both[] = {gaps(), spheres};
  EXPECT_EQ(stability_checks(both).figures.size(), 12u);
  EXPECT_EQ(judge_stability(both).status, VerdictStatus::holds);
  spheres.judged[0].gap *= 1.2;
  const GapCurve off[] = {gaps(), spheres};
  expect_fails(judge_stability(off), "the gap at L = 10, t = 3 with spherical features");
  expect_fails(judge_stability({}), "nothing was judged");
}

TEST(StabilityCaption, SaysHowFastTheGapFallsOrThatItDoesNot) {
  GapCurve curve{.features = Features::gaussian,
                 .sup = {{.L = 10, .gap = 1}, {.L = 100, .gap = 0.5}, {.L = 10000, .gap = 0.05}}};
  EXPECT_EQ(gap_fall_text(std::span(&curve, 1)),
            " Between the last two lengths it falls like L^{−0.5} with Gaussian features.");
  GapCurve other = curve;
  other.features = Features::sphere;
  other.sup[2].gap = 0.6;
  const GapCurve both[] = {curve, other};
  EXPECT_THAT(gap_fall_text(both), HasSubstr(", does not fall with spherical features."));
  const GapCurve alike[] = {curve, curve, other, curve};
  EXPECT_EQ(gap_fall_text(alike),
            " Between the last two lengths it falls like L^{−0.5} with Gaussian features, like "
            "L^{−0.5} with Gaussian features, does not fall with spherical features, falls like "
            "L^{−0.5} with Gaussian features.");
  other.sup.resize(1);
  EXPECT_EQ(gap_fall_text(std::span(&other, 1)), "");
}

// ---- Ends of training

std::vector<EndPoint> ends() {
  return {{.L = 1000, .excess = 0.0211, .error = 1e-4, .expected = 0.021},
          {.L = 10000, .excess = 0.00205, .error = 1e-5, .expected = 0.00207},
          {.L = 100000, .excess = 0.000206, .error = 1e-6, .expected = 0.000207}};
}

TEST(EndsOfTraining, ValuesFallsAndExponents) {
  Checks checks;
  add_ends(checks, "the risk", ends(), Source::independent);
  EXPECT_EQ(checks.figures.size(), 5u);
  checks.controls = {figure(3, 0, 0.01)};
  expect_each_figure_can_fail(checks);
  std::vector<EndPoint> slow = ends();  // right at both ends of the last step, not at its rate
  slow[2].excess = slow[2].expected = 0.0004;
  checks = {.controls = {figure(3, 0, 0.01)}};
  add_ends(checks, "the risk", slow, Source::independent);
  EXPECT_THAT(trouble_of(checks), HasSubstr("as predicted is 0.7"));
}

TEST(Theorem43Verdict, IsTwoSided) {
  const TaskExcess good{.task = "noisy labels", .at = ends(), .start = 0.5};
  EXPECT_EQ(judge_theorem_4_3(std::span(&good, 1)).status, VerdictStatus::holds);
  expect_each_figure_can_fail(theorem_4_3_checks(std::span(&good, 1)));
  TaskExcess plateau = good;  // the old verdict allowed a plateau at 15 % of the first excess
  plateau.at[2].excess = 0.0031;
  expect_fails(judge_theorem_4_3(std::span(&plateau, 1)),
               "the excess risk of noisy labels at L = 1e5");
  TaskExcess untrained = good;
  untrained.start = untrained.at[2].expected;
  expect_fails(judge_theorem_4_3(std::span(&untrained, 1)), "the check cannot fail");
  expect_fails(judge_theorem_4_3({}), "nothing was judged");
}

Theorem51Numbers theorem51() {
  return {.bayes = 0,
          .reference_risk = 1e-9,
          .product_error = 1e-5,
          .start_error = 0.9,
          .trained = ends(),
          .bayes_at = {0, 0, 0},
          .lengths = {
              {.eps = 0.1, .length = 172, .error = 0.9, .expected = {"length", 0.1, 0, 171.4}}}};
}

TEST(Theorem51Verdict, JudgesRisksParametersAndLengths) {
  const Verdict verdict = judge_theorem_5_1(theorem51());
  EXPECT_EQ(verdict.status, VerdictStatus::holds) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("L(0.1) = 172"));
  expect_each_figure_can_fail(theorem_5_1_checks(theorem51()));
  Theorem51Numbers n = theorem51();
  n.lengths[0].length = 150;
  expect_fails(judge_theorem_5_1(n), "L(ε) for ε = 0.1 is 150");
  n.lengths[0].length.reset();
  expect_fails(judge_theorem_5_1(n), "L(ε) for ε = 0.1 is 0");
  n = theorem51();
  n.product_error = 1.1 * kProductTolerance;
  expect_fails(judge_theorem_5_1(n), "the learned product bA");
  n = theorem51();
  n.bayes_at[1] = 0.0022;
  expect_fails(judge_theorem_5_1(n), "at L = 1e4 is below the Bayes risk");
  n = theorem51();
  n.reference_risk = 1.1e-8;
  expect_fails(judge_theorem_5_1(n), "the infinite-prompt flow ends 1.1e-08 above");
}

TEST(Theorem51Caption, SaysWhetherTheAxisShowsTheInfinitePrompt) {
  EXPECT_THAT(paths_caption(1e-9, 1e-5), HasSubstr("falls to 1e-09, below the axis."));
  EXPECT_THAT(paths_caption(0.25, 0.01), HasSubstr("falls to 0.25."));
}

// ---- Transfer

std::vector<LinearAndSoftmax> transfer_numbers() {
  std::vector<LinearAndSoftmax> out;
  for (const std::int64_t L : {1000, 10000, 100000}) {
    const double x = 1 / static_cast<double>(L);
    out.push_back({.L = L,
                   .linear = 6 * x,
                   .closed = 6 * x,
                   .noisy = 7 * x,
                   .noisy_closed = 7 * x,
                   .untrained = 6.2 * x,
                   .softmax = 20 * x,
                   .softmax_error = 0.1 * x,
                   .softmax_expected = 20.1 * x});
  }
  return out;
}

TEST(TransferVerdict, ComparesWithTheClosedFormAndWithSoftmax) {
  EXPECT_EQ(judge_transfer(transfer_numbers()).status, VerdictStatus::holds);
  expect_each_figure_can_fail(transfer_checks(transfer_numbers()));
  std::vector<LinearAndSoftmax> n = transfer_numbers();
  n[1].noisy *= 1 + 2e-6;
  expect_fails(judge_transfer(n), "linear attention with noisy labels at L = 1e4");
  n = transfer_numbers();
  n[2].softmax *= 1.15;
  expect_fails(judge_transfer(n), "softmax − linear at L = 1e5");
  expect_fails(judge_transfer({}), "no flow");
}

// ---- The experiment

TEST(ExperimentVerdict, JudgesTheTheoremsStartOnly) {
  std::vector<EndPoint> linear = ends();
  for (EndPoint& e : linear) e.excess /= 3, e.expected /= 3, e.error /= 3;
  std::vector<TheoremStart> curves{
      {.preset = "as intended", .model = ModelKind::softmax, .at = ends()},
      {.preset = "as intended", .model = ModelKind::linear, .at = linear}};
  const Verdict good = judge_experiment(curves, " 16 of 32 starts.");
  EXPECT_EQ(good.status, VerdictStatus::holds) << good.text;
  EXPECT_THAT(good.text, HasSubstr("16 of 32 starts."));
  expect_each_figure_can_fail(experiment_checks(curves));
  curves[1].at = ends();  // linear attention that ends where softmax does
  expect_fails(judge_experiment(curves, ""), "the check cannot fail");
  curves[1].at = linear;
  curves[0].at[1].excess *= 1.15;
  expect_fails(judge_experiment(curves, ""), "softmax, as intended at L = 1e4");
  expect_fails(judge_experiment({}, ""), "nothing was judged");
}

// The point to which the flow of the exact risk goes on from an end of SGD.
ExperimentRow stationary(double mse) {
  return {.kind = ExperimentKind::stationary, .L = 1000, .mse = mse};
}

TEST(ExperimentText, SaysHowManyHighEndsWereAPlateau) {
  const ExperimentRow start{.mse = 0.5};  // an end of SGD begins another cell
  const std::vector<ExperimentRow> rows{start,
                                        stationary(0.1),
                                        stationary(0.1009),
                                        stationary(0.15),  // another point
                                        start,
                                        stationary(0.2),
                                        stationary(0.199),
                                        stationary(0.2021)};  // just beyond 1 %
  EXPECT_EQ(
      high_ends_text(rows),
      "\n\nOf 4 high ends the flow of the exact risk leaves 2 for the point of the best end, so "
      "SGD had stopped on a plateau there. From 2 it goes to another point, whose error is up "
      "to 1.5 times as large; the last table lists them.");
  EXPECT_THAT(high_ends_text(std::span(rows).first(3)), Not(HasSubstr("another point")));
  EXPECT_EQ(high_ends_text(std::span(rows).first(2)), "");  // a best end and no high one
  EXPECT_EQ(high_ends_text({}), "");
}

}  // namespace
}  // namespace esscher::paper
