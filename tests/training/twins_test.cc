#include "esscher/training/twins.h"

#include <gtest/gtest.h>

#include "esscher/estimate/moments.h"
#include "esscher/risk/closed_form.h"
#include "esscher/risk/query_risk.h"
#include "esscher/training/start.h"
#include "tests/risk/query_grid.h"
#include "tests/risk/regression_cases.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

TwinSetup small_setup() {
  TwinSetup setup;
  setup.task = LinearRegressionTask::with_covariance(power_covariance(2, 0.5));
  setup.space = {ParameterSpace::block, 3};
  setup.theta0 = parameters_of(setup.space, balanced_start(2, 0.4));
  setup.flow.stationary = 1e-7;
  setup.risk.log2_nodes = 8;
  setup.points = 30;
  return setup;
}

TEST(Compare, TwinsApproachTheReference) {
  const TwinSetup setup = small_setup();
  const FlowResult reference = reference_flow(setup);
  for (ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    const Twin near = twin_flow(setup, reference, kind, 20);
    const Twin far = twin_flow(setup, reference, kind, 20000);
    EXPECT_EQ(near.path.size(), reference.path.size());
    EXPECT_EQ(near.path[0].distance, 0);
    // lambda = 1/b^2 = 0.47 is close to the edge of the 1/L regime, so softmax is slow here.
    EXPECT_LT(far.sup_distance, 0.2 * near.sup_distance) << name(kind);
    EXPECT_LT(far.sup_gradient_gap.value, 0.2 * near.sup_gradient_gap.value);
    EXPECT_LT(far.sup_risk_gap, 0.2 * near.sup_risk_gap);
    EXPECT_LT(far.limiting_risk.value, near.limiting_risk.value);
    EXPECT_LT(near.horizon, far.horizon);
  }
}

TEST(Compare, InfiniteTwinIsTheReference) {
  const TwinSetup setup = small_setup();
  const FlowResult reference = reference_flow(setup);
  const Twin same = twin_flow(setup, reference, ModelKind::softmax, Length::infinity());
  EXPECT_EQ(same.sup_distance, 0);
  EXPECT_EQ(same.sup_gradient_gap.value, 0);
}

TEST(Compare, LengthForRiskIsTheSmallest) {
  const TwinSetup setup = small_setup();
  // Linear attention: the limiting risk is known in closed form.
  const double eps = 0.02;
  const LengthForRisk found = length_for_risk(setup, ModelKind::linear, 0, eps);
  const auto best = [&](std::int64_t L) {
    return linear_risk(setup.task.regression(), block_optimum(setup.task.regression(), L), L);
  };
  ASSERT_GT(found.length, 1);
  EXPECT_LE(best(found.length), eps);
  EXPECT_GT(best(found.length - 1), eps);
  EXPECT_TRUE(close(found.risk, best(found.length), 1e-6));
  EXPECT_EQ(found.low, found.length);
  EXPECT_EQ(found.high, found.length);
  EXPECT_EQ(length_for_risk(setup, ModelKind::linear, 0, 1e-3, 100).length, 0);
}

// The truth is the flow on a trapezoidal rule over the query. Each search has its own nodes.
TEST(Compare, LengthForRiskHasAnInterval) {
  TwinSetup setup = small_setup();
  setup.task = LinearRegressionTask::isotropic(1);
  setup.space = {ParameterSpace::block, 2};
  setup.theta0 = parameters_of(setup.space, balanced_start(1, 0.5));
  setup.risk.log2_nodes = 5;
  const double eps = 0.05;
  const QueryNodes grid = testing::query_grid(setup.task.regression(), 81, 8);
  const auto true_risk = [&](std::int64_t L) {
    const QueryRisk risk(setup.task.regression(), NodeTables(L), grid);
    return gradient_flow(risk, setup.space, setup.theta0, setup.flow).end().risk;
  };
  std::int64_t truth = 1;
  for (std::int64_t step = 256; step > 0; step /= 2) {
    if (true_risk(truth + step - 1) > eps) truth += step;
  }
  EXPECT_GT(true_risk(truth - 1), eps);
  EXPECT_LE(true_risk(truth), eps);
  int misses = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    setup.risk.stream = Stream(seed);
    const LengthForRisk found = length_for_risk(setup, ModelKind::softmax, 0, eps);
    ASSERT_TRUE(found.low && found.high);
    EXPECT_LE(*found.low, found.length);
    EXPECT_LE(found.length, *found.high);
    EXPECT_LE(found.risk, eps);
    EXPECT_GT(found.risk_before, eps);
    EXPECT_LT(*found.high - *found.low, 2 + truth / 2);
    misses += truth < *found.low || truth > *found.high;
  }
  EXPECT_LE(misses, 2);  // more have probability 5e-4
  const LengthForRisk none = length_for_risk(setup, ModelKind::softmax, 0, 1e-4, 100);
  EXPECT_EQ(none.length, 0);
  EXPECT_FALSE(none.low || none.high);
}

// The flow of a mean over draws is random. Over independent sets of draws its limiting risk has a
// standard error, which the comparison of engines and with the nodes of the built-in task needs.
TEST(Compare, ATaskOfOnesOwnHasTwins) {
  TwinSetup own = small_setup();
  own.task = regression_task(own.task.regression());
  own.risk.draws = 300;
  const FlowResult reference = reference_flow(own);
  EXPECT_EQ(twin_flow(own, reference, ModelKind::softmax, Length::infinity()).sup_distance, 0);
  const auto gaps = [](TwinSetup setup, Engine engine, std::uint64_t first) {
    Moments out;
    for (std::uint64_t i = 0; i < 12; ++i) {
      setup.risk.engine = engine;
      setup.risk.stream = Stream(first).split(i);
      const Twin twin = twin_flow(setup, reference_flow(setup), ModelKind::softmax, 20);
      out.add(twin.path.back().risk);
    }
    return out.estimate(engine);
  };
  own.points = 5;
  own.flow.t_end = 3;
  const Estimate exact = gaps(own, Engine::exact, 1);
  EXPECT_TRUE(testing::agree(gaps(own, Engine::direct, 2), exact));
  TwinSetup nodes = small_setup();
  nodes.points = 5;
  nodes.flow.t_end = 3;
  EXPECT_TRUE(testing::agree(gaps(nodes, Engine::automatic, 3), exact));
}

}  // namespace
}  // namespace esscher
