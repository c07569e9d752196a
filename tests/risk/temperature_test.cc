// The best temperature of a head: closed forms, a brute-force scan, simulated prompts, and the cases
// that must not change it.
#include "esscher/risk/temperature.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/estimate/interval.h"
#include "esscher/estimate/quantile.h"
#include "esscher/risk/closed_form.h"
#include "esscher/risk/sample_risk.h"
#include "tests/coverage.h"
#include "tests/risk/regression_cases.h"
#include "tests/risk/two_token_risk.h"
#include "tests/testing.h"

namespace esscher {
namespace {

RiskOptions small() { return {.log2_nodes = 10, .scramblings = 4, .stream = Stream(3)}; }

std::vector<Readout> optimum(const LinearRegressionTask& task) {
  return {block_optimum(task, Length::infinity())};
}

// Multiplying Sigma by 4 makes the output of an infinite prompt four times too large.
TEST(Temperature, TheLimitHasAClosedForm) {
  const LinearRegressionTask task = LinearRegressionTask::isotropic(3);
  const auto best = [&](const LinearRegressionTask& at) {
    return best_factor(at, optimum(task), ModelKind::softmax, Length::infinity(), small());
  };
  EXPECT_NEAR(*best(task).factor, 1, 1e-12);
  EXPECT_NEAR(*best(shifted(task, {ShiftKind::covariance, 4})).factor, 0.25, 1e-12);
  EXPECT_NEAR(*best(shifted(task, {ShiftKind::query, 4})).factor, 1, 1e-12);
  // A head of the wrong sign is best at no temperature.
  std::vector<Readout> wrong = optimum(task);
  wrong[0].r *= -1;
  EXPECT_FALSE(
      best_factor(task, wrong, ModelKind::softmax, Length::infinity(), small()).factor.has_value());
  EXPECT_FALSE(
      best_factor(task, wrong, ModelKind::softmax, Length(50), small()).factor.has_value());
}

// Any head, any task: the vertex is a minimum of linear_risk, which knows nothing of it.
TEST(Temperature, LinearAttentionHasItsVertexAtEveryLength) {
  const LinearRegressionTask task = testing::general_task(3, Stream(1));
  const std::vector<Readout> heads{block_optimum(task, Length(20))};
  for (const Length L : {Length(5), Length(100)}) {
    const double f = *best_factor(task, heads, ModelKind::linear, L, small()).factor;
    const auto at = [&](double x) { return linear_risk(task, at_factor(heads, x)[0], L); };
    EXPECT_NEAR((at(f + 1e-4) - at(f - 1e-4)) / 2e-4, 0, 1e-8);
    EXPECT_LT(at(f), at(1.01 * f));
  }
}

// The error of a best factor over sets of nodes, as SoftmaxRisk.SetsOfNodesTellTheirError has it for
// risks: the median of s^2 is 6.35/7 of the mean square error.
TEST(Temperature, SetsOfNodesTellTheErrorOfABestFactor) {
  const LinearRegressionTask task = LinearRegressionTask::isotropic(1);
  const std::vector<Readout> head{testing::two_token_head(1, 1.5)};
  const double truth = testing::best_two_token_alpha(1.5, 0.3, 4);
  constexpr int kSeeds = 300;
  testing::Coverage c{.seeds = kSeeds};
  std::vector<double> stated;
  double squares = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const BestFactor best =
        best_factor(task, head, ModelKind::softmax, Length(2),
                    {.log2_nodes = 8, .scramblings = 8, .stream = Stream(seed)});
    ASSERT_TRUE(best.factor);
    c.held += student_interval(*best.factor, best.std_error, 7).contains(truth) ? 1 : 0;
    stated.push_back(best.std_error * best.std_error);
    squares += std::pow(*best.factor - truth, 2) / kSeeds;
  }
  testing::expect_calibrated(c, "best factors of eight sets of nodes");
  EXPECT_TRUE(testing::close(median(stated) / squares, 6.35 / 7, 0.4));
}

TEST(Temperature, AFinitePromptAsksForSmallerScores) {
  const LinearRegressionTask task = LinearRegressionTask::isotropic(2);
  double before = 0;
  for (const std::int64_t L : {10, 100, 1000}) {
    const BestFactor best =
        best_factor(task, optimum(task), ModelKind::softmax, Length(L), small());
    ASSERT_TRUE(best.factor);
    EXPECT_GT(best.std_error, 0);
    EXPECT_LT(*best.factor + 6 * best.std_error, 1) << L;
    EXPECT_GT(*best.factor, before) << L;
    before = *best.factor;
  }
}

// The search against risk() on a fine grid, for a head far from its best.
TEST(Temperature, NoPointOfAFineGridIsBetter) {
  const LinearRegressionTask task = LinearRegressionTask::isotropic(2);
  std::vector<Readout> heads = optimum(task);
  heads[0].U *= 0.25;
  for (const std::int64_t L : {10, 100, 1000}) {
    const auto at = [&](double f) {
      return risk(task, at_factor(heads, f), ModelKind::softmax, Length(L), small()).value;
    };
    const BestFactor best = best_factor(task, heads, ModelKind::softmax, Length(L), small());
    ASSERT_TRUE(best.factor) << L;
    const double lowest = at(*best.factor);
    for (double f = 0.05; f < 40; f *= 1.15) EXPECT_GT(at(f), lowest * (1 - 1e-4)) << f;
  }
}

// Whole prompts, drawn token by token, know nothing of nodes: both neighbours of the best factor are
// worse on the same prompts.
TEST(Temperature, SimulatedPromptsAreWorseOnBothSides) {
  LinearRegressionTask task = LinearRegressionTask::isotropic(1);
  task.noise_variance = 0.3;
  const std::vector<Readout> heads = optimum(task);
  const Length L(12);
  const double f = *best_factor(task, heads, ModelKind::softmax, L, small()).factor;
  constexpr int kPrompts = 60000;
  const auto risk_at = [&](double x) {
    return simulated_risk(regression_task(task), at_factor(heads, x)[0], ModelKind::softmax, L,
                          kPrompts, Stream(5), Engine::direct);
  };
  const Estimate best = risk_at(f);
  const Estimate exact = risk(task, at_factor(heads, f)[0], ModelKind::softmax, L,
                              {.log2_nodes = 12, .stream = Stream(9)});
  EXPECT_TRUE(testing::agrees(best, exact.value));
  EXPECT_GT(risk_at(0.6 * f).value, best.value);
  EXPECT_GT(risk_at(1.6 * f).value, best.value);
}

// Without noise the risk of a head that reads no labels is proportional to the variance of the task.
TEST(Temperature, ATaskShiftAloneChangesNothing) {
  const LinearRegressionTask task = LinearRegressionTask::isotropic(2);
  TemperatureProblem problem{.task = task,
                             .heads = optimum(task),
                             .lengths = {Length(30), Length::infinity()},
                             .factors = {0.5, 1},
                             .shifts = {{ShiftKind::task, 9}, {ShiftKind::noise, 0.5}},
                             .risk = small()};
  const std::vector<TemperatureRow> rows = compute_here(temperature_cells(problem));
  ASSERT_EQ(rows.size(), 3U * 2 * 3);
  const TemperatureRow &none = rows[2], &of_task = rows[8], &of_noise = rows[14];
  ASSERT_EQ(of_task.shift, "task x 9");
  ASSERT_EQ(of_noise.shift, "noise + 0.5");
  EXPECT_NEAR(*of_task.factor, *none.factor, 1e-6);
  EXPECT_NEAR(*of_task.risk, 9 * *none.risk, 1e-6);
  EXPECT_LT(*of_noise.factor, *none.factor);
  EXPECT_GT(*none.gain, 6 * *none.gain_std_error);
  EXPECT_TRUE(testing::agrees({*none.gain, *none.gain_std_error, 4, Engine::quadrature},
                              *none.risk_before - *none.risk));
  EXPECT_EQ(rows[5].gain_std_error, 0);  // L = infinity
  EXPECT_NEAR(*rows[5].factor, 1, 1e-12);
}

// The factor in force multiplies: a schedule that halves scores has its best at twice the grid's.
TEST(Temperature, AScheduleStandsBehindTheGrid) {
  const LinearRegressionTask task = LinearRegressionTask::isotropic(1);
  TemperatureProblem problem{.task = task,
                             .heads = optimum(task),
                             .lengths = {Length(40)},
                             .scheduled = {0.5},
                             .factors = {1},
                             .risk = small()};
  const std::vector<TemperatureRow> rows = compute_here(temperature_cells(problem));
  EXPECT_EQ(rows[0].factor, 0.5);
  EXPECT_EQ(rows[1].risk_before, rows[0].risk);
  problem.scheduled = {0.5, 1};
  EXPECT_THROW(temperature_cells(problem), ArgumentError);
  problem.scheduled = {-1};
  EXPECT_THROW(temperature_cells(problem), ArgumentError);
}

// Several heads have no formula: two half heads are one head, on prompts instead of nodes.
TEST(Temperature, SeveralHeadsAreSearchedOnFixedPrompts) {
  const LinearRegressionTask task = LinearRegressionTask::isotropic(1);
  std::vector<Readout> halves(2, optimum(task)[0]);
  for (Readout& half : halves) half.r *= 0.5;
  const Length L(20);
  RiskOptions options = small();
  options.draws = 16000;
  const BestFactor one = best_factor(task, optimum(task), ModelKind::softmax, L, options);
  const BestFactor two = best_factor(task, halves, ModelKind::softmax, L, options);
  EXPECT_TRUE(testing::agrees(
      {*two.factor, std::hypot(one.std_error, two.std_error), 4, Engine::sampled}, *one.factor));
}

TEST(Shift, IsReadOrRefused) {
  EXPECT_EQ(parse_shift("covariance=4").text(), "covariance x 4");
  EXPECT_EQ(parse_shift("noise=0.5").by, 0.5);
  for (const char* text :
       {"covariance", "covarianc=4", "task=", "task=-1", "task=2x", "task=nan"}) {
    EXPECT_THROW(parse_shift(text), ArgumentError) << text;
  }
  const LinearRegressionTask task =
      shifted(LinearRegressionTask::isotropic(2), {ShiftKind::prompt, 3});
  EXPECT_EQ(task.prompt_cov(0, 0), 3);
  EXPECT_EQ(task.query_cov(0, 0), 1);
}

}  // namespace
}  // namespace esscher
