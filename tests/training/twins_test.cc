#include "esscher/training/twins.h"

#include <gtest/gtest.h>

#include "esscher/risk/closed_form.h"
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
    EXPECT_LT(far.sup_gradient_gap, 0.2 * near.sup_gradient_gap);
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
  EXPECT_EQ(same.sup_gradient_gap, 0);
}

TEST(Compare, LengthForRiskIsTheSmallest) {
  const TwinSetup setup = small_setup();
  // Linear attention: the limiting risk is known in closed form.
  const double eps = 0.02;
  const LengthForRisk found = length_for_risk(setup, ModelKind::linear, 0, eps);
  const auto best = [&](std::int64_t L) {
    return linear_risk(setup.task, block_optimum(setup.task, L), L);
  };
  ASSERT_GT(found.length, 1);
  EXPECT_LE(best(found.length), eps);
  EXPECT_GT(best(found.length - 1), eps);
  EXPECT_TRUE(close(found.risk, best(found.length), 1e-6));
  EXPECT_EQ(length_for_risk(setup, ModelKind::linear, 0, 1e-3, 100).length, 0);
}

TEST(Compare, ATaskOfOnesOwnHasTwins) {
  TwinSetup setup = small_setup();
  setup.risk.draws = 300;
  setup.own_task = regression_task(setup.task);
  const FlowResult reference = reference_flow(setup);
  EXPECT_EQ(twin_flow(setup, reference, ModelKind::softmax, Length::infinity()).sup_distance, 0);
  const auto distance = [&](Length L, Engine engine) {
    setup.risk.engine = engine;
    return twin_flow(setup, reference, ModelKind::softmax, L).sup_distance;
  };
  const double near = distance(20, Engine::exact), far = distance(20000, Engine::exact);
  EXPECT_LT(far, 0.2 * near);
  // Prompts that are drawn fluctuate around those that are averaged over.
  EXPECT_TRUE(close(distance(20, Engine::direct), near, 0.5));
  // The built-in task on its quadrature nodes, against 300 draws.
  setup.own_task.reset();
  EXPECT_TRUE(close(distance(20, Engine::automatic), near, 0.25));
}

}  // namespace
}  // namespace esscher
