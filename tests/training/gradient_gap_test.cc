#include "esscher/training/gradient_gap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "esscher/estimate/interval.h"
#include "esscher/risk/closed_form.h"
#include "esscher/risk/query_risk.h"
#include "esscher/training/start.h"
#include "esscher/training/twins.h"
#include "tests/coverage.h"
#include "tests/risk/query_grid.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

// The path of the paper's section on stability.
TwinSetup stability() {
  const LinearRegressionTask task = LinearRegressionTask::with_covariance(power_covariance(3, 0.5));
  TwinSetup setup;
  setup.task = task;
  setup.space = {ParameterSpace::block, 4};
  setup.theta0 = parameters_of(setup.space, balanced_start(3, balanced_start_bound(task) / 2));
  setup.flow.rtol = 1e-7;
  setup.flow.atol = 1e-9;
  setup.flow.t_end = 50;
  setup.flow.stationary = 1e-6;
  setup.points = 30;
  setup.risk.log2_nodes = 10;
  return setup;
}

// The gap by a trapezoidal rule over the query.
double gap_on_grid(const TwinSetup& setup, const QueryNodes& grid, const NodeTables& tables,
                   const VectorView& theta) {
  const LinearRegressionTask& task = setup.task.regression();
  const Readout at = setup.space.readout(theta);
  Readout finite, limit;
  QueryRisk(task, tables, grid, 1.0)(at, &finite);
  limit_risk(task, at, &limit);
  finite.U -= limit.U;
  finite.r -= limit.r;
  return setup.space.pull_back(theta, finite).norm();
}

// The path at given times, which no steps of the integrator choose.
FlowPoint at_time(const TwinSetup& setup, double t) {
  const RiskFunction limit =
      risk_function(setup.task, ModelKind::softmax, Length::infinity(), setup.risk);
  FlowOptions options = setup.flow;
  options.times = {0.0, t};
  options.t_end = t;
  return gradient_flow(flow_field(limit, setup.space), setup.theta0, options).path.back();
}

// Along the path queries become sharp (lambda > 1), and rare ones carry the gap of long prompts.
// The known gaps are those of an independent program at the same points.
TEST(GradientGap, RareQueriesAreSeenAndErrorsCover) {
  TwinSetup setup = stability();
  const QueryNodes grid = testing::query_grid(setup.task.regression(), 45, 8);
  const struct {
    std::int64_t L;
    double t, gap;
  } cases[] = {{100, 0.330, 0.2584},
               {1000, 0.419, 0.1093},
               {1000000, 0.419, 0.0064},
               {1000000, 0.856, 0.0045}};
  testing::Coverage covered;
  for (const auto& c : cases) {
    const FlowPoint p = at_time(setup, c.t);
    const double truth = gap_on_grid(setup, grid, NodeTables(c.L), p.theta);
    EXPECT_EQ(p.t, c.t);
    EXPECT_TRUE(close(truth, c.gap, 0.01)) << c.L << " " << c.t;
    for (const int seed : testing::coverage_seeds(12)) {
      setup.risk.stream = Stream(static_cast<std::uint64_t>(seed));
      const Estimate got = GradientGap(setup, ModelKind::softmax, c.L)(p.theta);
      EXPECT_EQ(got.engine, Engine::quadrature);
      EXPECT_FALSE(got.heavy);
      EXPECT_GT(got.std_error, 0);
      EXPECT_LT(got.std_error, 0.03 * truth) << c.L << " " << c.t;
      ++covered.seeds;
      covered.held += student_interval(got.value, got.std_error, 7).contains(truth) ? 1 : 0;
    }
  }
  testing::record_coverage(0, "gradient gap along training", "Gaussian features, d = 3",
                           "8 sets of 1024 nodes", covered);
  EXPECT_GE(covered.held, 39);  // 2.4 of 48 may miss; more than 9 have probability 2e-4
}

TEST(GradientGap, ClosedFormsHaveNoError) {
  const TwinSetup setup = stability();
  for (const Length L : {Length(30), Length::infinity()}) {
    const Estimate gap = GradientGap(setup, ModelKind::linear, L)(setup.theta0);
    EXPECT_EQ(gap.engine, Engine::exact);
    EXPECT_EQ(gap.std_error, 0);
    EXPECT_EQ(gap.value > 0, !L.is_infinite());
  }
}

// By draws of the same task, in batches.
TEST(GradientGap, DrawsAgreeWithNodes) {
  const TwinSetup nodes = stability();
  TwinSetup own = nodes;
  own.task = regression_task(nodes.task.regression());
  own.risk.draws = 2000;
  const Estimate a = GradientGap(own, ModelKind::softmax, 30)(nodes.theta0);
  const Estimate b = GradientGap(nodes, ModelKind::softmax, 30)(nodes.theta0);
  EXPECT_TRUE(testing::agree(a, b));
  EXPECT_LT(b.std_error, a.std_error);
}

// (3, 4) with noise: the square of the mean overstates 25 by the trace of its covariance.
TEST(GradientGap, NormOfAMeanWithoutTheBiasOfItsNoise) {
  CoMoments vectors;
  for (const double off : {-1.0, 1.0}) {
    vectors.add(Vector{{3 + off, 4 + 2 * off}});
  }
  // Covariance of the mean [[1,2],[2,4]]: 25 - 5, and (9 + 2*24 + 64)/25.
  const Estimate norm = norm_of_mean(vectors);
  EXPECT_TRUE(close(norm.value, std::sqrt(20.0), 1e-14));
  EXPECT_TRUE(close(norm.std_error, std::sqrt(121.0 / 25), 1e-14));
}

}  // namespace
}  // namespace esscher
