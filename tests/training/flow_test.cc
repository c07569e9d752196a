#include "esscher/training/flow.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/risk/closed_form.h"
#include "esscher/training/start.h"
#include "tests/gradient_check.h"
#include "tests/risk/regression_cases.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

RiskFunction linear(const LinearRegressionTask& task, Length L) {
  return [task, L](const Readout& at, Readout* g) { return linear_risk(task, at, L, g); };
}

LinearRegressionTask paper_task(Index d) {
  return LinearRegressionTask::with_covariance(power_covariance(d, 0.5));
}

FlowOptions tight() {
  FlowOptions o;
  o.rtol = 1e-10;
  o.atol = 1e-12;
  o.stationary = 1e-10;
  return o;
}

TEST(Flow, LimitIsTheFormulaOfThePaper) {
  for (Index d : {1, 2, 5}) {
    const LinearRegressionTask task = paper_task(d);
    const Parametrisation space{ParameterSpace::block, d + 1};
    const Readout start = balanced_start(d, 0.5 * balanced_start_bound(task));
    const FlowResult flow = gradient_flow(linear(task, Length::infinity()), space,
                                          parameters_of(space, start), tight());
    ASSERT_EQ(flow.status, FlowStatus::stationary);
    const Readout end = space.readout(flow.end().theta);
    const Matrix inverse = task.prompt_cov.inverse();
    const double b = std::pow((inverse * inverse).trace(), 0.25);
    EXPECT_TRUE(close(end.r(d), b, 1e-8)) << "d = " << d;
    EXPECT_TRUE(close(Matrix(end.U.topLeftCorner(d, d)), Matrix(inverse / b), 1e-8));
    EXPECT_LT(flow.end().risk, 1e-15);
    EXPECT_LT(flow.scale_drift, 1e-8);
    EXPECT_LT(flow.energy_defect, 1e-8);
    EXPECT_LT(flow.largest_increase, 1e-12);
  }
}

TEST(Flow, LinearAttentionEndsAtGammaN) {
  for (std::int64_t N : {5, 40}) {
    LinearRegressionTask task = paper_task(3);
    task.noise_variance = 0.1;
    const Parametrisation space{ParameterSpace::UV, 4};
    const Vector theta0 = parameters_of(space, balanced_start(3, 0.4));
    const FlowResult flow = gradient_flow(linear(task, N), space, theta0, tight());
    ASSERT_EQ(flow.status, FlowStatus::stationary);
    const Readout end = space.readout(flow.end().theta), want = block_optimum(task, N);
    EXPECT_TRUE(close(end.U, want.U, 1e-6));
    EXPECT_TRUE(close(end.r(3), want.r(3), 1e-6));
  }
}

TEST(Flow, BlockAndFullSpaceAgree) {
  LinearRegressionTask task = paper_task(3);
  task.noise_variance = 0.2;
  FlowOptions options = tight();
  options.t_end = 2;
  options.times = {0, 0.25, 0.5, 1, 1.5};
  const Readout start = balanced_start(3, 0.4);
  const Parametrisation block{ParameterSpace::block, 4}, full{ParameterSpace::UV, 4};
  const FlowResult a = gradient_flow(linear(task, 20), block, parameters_of(block, start), options);
  const FlowResult b = gradient_flow(linear(task, 20), full, parameters_of(full, start), options);
  ASSERT_EQ(a.path.size(), 6u);
  ASSERT_EQ(b.path.size(), 6u);
  for (std::size_t i = 0; i < a.path.size(); ++i) {
    EXPECT_EQ(a.path[i].t, b.path[i].t);
    const Readout p = block.readout(a.path[i].theta), q = full.readout(b.path[i].theta);
    EXPECT_TRUE(close(p.U, q.U, 1e-7)) << "t = " << a.path[i].t;
    EXPECT_TRUE(close(p.r(3), q.r(3), 1e-7));
  }
}

TEST(Flow, SmallStepDescentConvergesToIt) {
  const LinearRegressionTask task = testing::general_task(2, Stream(1));
  const Parametrisation space{ParameterSpace::UV, 3};
  const Vector theta0 = parameters_of(space, testing::random_readout(3, 0.3, Stream(2)));
  const RiskFunction risk = linear(task, 10);
  FlowOptions options = tight();
  options.t_end = 1;
  const Vector exact = gradient_flow(risk, space, theta0, options).end().theta;
  const auto descend = [&](int steps) {
    Vector theta = theta0;
    Readout g;
    for (int i = 0; i < steps; ++i) {
      risk(space.readout(theta), &g);
      theta -= space.pull_back(theta, g) / steps;
    }
    return (theta - exact).norm();
  };
  const double coarse = descend(1000), fine = descend(2000);
  EXPECT_LT(fine, 1e-2);
  EXPECT_TRUE(close(coarse / fine, 2, 0.02));  // first order in the step
}

TEST(Flow, IsASemigroup) {
  const LinearRegressionTask task = testing::general_task(2, Stream(3));
  const Parametrisation space{ParameterSpace::KQVO, 3, 3, 0.5};
  const RiskFunction risk = linear(task, Length::infinity());
  const Vector theta0 = 0.5 * testing::random_matrix(space.size(), 1, Stream(4)).col(0);
  const auto run = [&](const Vector& from, double t) {
    FlowOptions options = tight();
    options.t_end = t;
    return gradient_flow(risk, space, from, options);
  };
  const FlowResult whole = run(theta0, 1.5);
  const Vector parts = run(run(theta0, 0.6).end().theta, 0.9).end().theta;
  EXPECT_TRUE(close(Matrix(parts), Matrix(whole.end().theta), 1e-7));
  EXPECT_LT(whole.conserved_drift, 1e-8);
  EXPECT_LT(whole.scale_drift, 1e-8);
  EXPECT_LT(whole.energy_defect, 1e-7);
}

TEST(Flow, AdamsAndBdfAgree) {
  const LinearRegressionTask task = paper_task(2);
  const Parametrisation space{ParameterSpace::KQV, 3, 3, 1};
  const Vector theta0 = parameters_of(space, balanced_start(2, 0.4));
  FlowOptions options = tight();
  options.t_end = 3;
  const FlowResult bdf = gradient_flow(linear(task, 30), space, theta0, options);
  options.stepping = Stepping::adams;
  const FlowResult adams = gradient_flow(linear(task, 30), space, theta0, options);
  EXPECT_TRUE(close(Matrix(adams.end().theta), Matrix(bdf.end().theta), 1e-7));
}

// The integrator of the explorer, on closed forms and on the quadrature of softmax, recorded inside steps.
TEST(Flow, RungeKuttaAndBdfAgree) {
  const LinearRegressionTask task = testing::general_task(2, Stream(5));
  const Parametrisation space{ParameterSpace::block, 3};
  const Vector theta0 = parameters_of(space, balanced_start(2, 0.4));
  const RiskFunction softmax =
      risk_function(task, ModelKind::softmax, Length(20), {.log2_nodes = 6});
  for (const RiskFunction& risk : {linear(task, 30), softmax}) {
    FlowOptions options = tight();
    options.t_end = 3;
    options.times = {0.05, 0.3, 1.1, 2.9};
    const FlowResult bdf = gradient_flow(risk, space, theta0, options);
    options.stepping = Stepping::runge_kutta;
    const FlowResult own = gradient_flow(risk, space, theta0, options);
    ASSERT_EQ(own.path.size(), 6u);
    ASSERT_EQ(own.status, FlowStatus::t_end);
    for (std::size_t i = 0; i < own.path.size(); ++i) {
      EXPECT_EQ(own.path[i].t, bdf.path[i].t);
      EXPECT_TRUE(close(Matrix(own.path[i].theta), Matrix(bdf.path[i].theta), 1e-7)) << i;
    }
    EXPECT_LT(own.energy_defect, 1e-7);
  }
}

TEST(Flow, PullBackIsTheChainRule) {
  const LinearRegressionTask task = testing::general_task(2, Stream(5));
  const RiskFunction risk = linear(task, 4);
  for (ParameterSpace kind :
       {ParameterSpace::block, ParameterSpace::UV, ParameterSpace::KQV, ParameterSpace::KQVO}) {
    const Parametrisation space{kind, 3, 2, 0.7};
    const Vector theta = 0.5 * testing::random_matrix(space.size(), 1, Stream(6)).col(0);
    Readout slope;
    risk(space.readout(theta), &slope);
    const std::function<double(const Vector&)> value = [&](const Vector& at) {
      return risk(space.readout(at), nullptr);
    };
    EXPECT_TRUE(testing::gradient_check(value, theta, space.pull_back(theta, slope))) << name(kind);
  }
}

TEST(Flow, ParametersOfInvertsReadout) {
  const Readout at = testing::random_readout(4, 1, Stream(7));
  for (ParameterSpace kind : {ParameterSpace::UV, ParameterSpace::KQV, ParameterSpace::KQVO}) {
    const Parametrisation space{kind, 4, 5, 0.5};
    const Vector theta = parameters_of(space, at);
    EXPECT_TRUE(close(space.readout(theta).U, at.U, 1e-12)) << name(kind);
    EXPECT_TRUE(close(Matrix(space.readout(theta).r), Matrix(at.r), 1e-12));
    const Vector conserved = space.conserved(theta);
    if (conserved.size() > 0) {
      EXPECT_LT(conserved.cwiseAbs().maxCoeff(), 1e-12);
    }
  }
  EXPECT_THROW(parameters_of({ParameterSpace::KQV, 4, 2, 1}, at), ArgumentError);
  EXPECT_THROW(parameters_of({ParameterSpace::block, 4}, at), ArgumentError);
}

TEST(Flow, BadOptionsAndFailuresAreNamed) {
  const LinearRegressionTask task = paper_task(1);
  const Parametrisation space{ParameterSpace::block, 2};
  FlowOptions options;
  options.rtol = 0;
  EXPECT_THROW(gradient_flow(linear(task, 5), space, Vector::Ones(2), options), ArgumentError);
  // A risk that is not finite away from the start: a status, not an exception or a NaN.
  const RiskFunction broken = [](const Readout& at, Readout* g) {
    *g = Readout::zero(2);
    g->U(0, 0) = at.U(0, 0) == 1 ? 1 : std::nan("");
    return 0.0;
  };
  const FlowResult result = gradient_flow(broken, space, Vector::Ones(2), FlowOptions());
  EXPECT_EQ(result.status, FlowStatus::failed);
  EXPECT_FALSE(result.message.empty());
}

}  // namespace
}  // namespace esscher
