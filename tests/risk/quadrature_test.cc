#include "esscher/risk/quadrature.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/estimate/interval.h"
#include "esscher/estimate/quantile.h"
#include "esscher/risk/closed_form.h"
#include "esscher/training/flow.h"
#include "esscher/training/start.h"
#include "tests/coverage.h"
#include "tests/risk/regression_cases.h"
#include "tests/risk/two_token_risk.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agree;
using testing::close;
using testing::expect_same_bits_for_any_threads;
using testing::general_task;
using testing::random_readout;

// Softmax attention on real tokens.
Estimate simulate(const LinearRegressionTask& task, const Readout& at, Index L, Index n) {
  const RegressionSampler sampler(task);
  Vector out(n);
  for (Index i = 0; i < n; ++i) {
    const Stream stream = Stream(21).split(i);
    const RegressionDraw draw = sampler.draw(stream);
    const Matrix z = sampler.prompt(draw.w, L, stream.split(9));
    Vector query = Vector::Zero(task.dim + 1);
    query.head(task.dim) = draw.x;
    Vector s = z * (at.U * query);
    s = (s.array() - s.maxCoeff()).exp();
    out(i) = std::pow(at.r.dot(z.transpose() * s) / s.sum() - draw.y, 2) / 2;
  }
  return testing::mean_of(out);
}

TEST(SoftmaxRisk, AgreesWithTokens) {
  const struct {
    Index d, L;
    double scale, noise;
  } cases[] = {{1, 1, 0.5, 0},   {1, 2, 1.0, 0.3},   {2, 5, 0.7, 0},    {3, 20, 0.4, 0.3},
               {5, 100, 0.3, 0}, {6, 200, 0.3, 0.5}, {2, 50, 2.0, 0.1}, {2, 50, 1e-4, 0.1}};
  for (const auto& c : cases) {
    LinearRegressionTask task = general_task(c.d, Stream(3).split(c.d));
    task.noise_variance = c.noise;
    task.query_noise = c.d == 3;
    const Readout at = random_readout(c.d + 1, c.scale, Stream(4).split(c.d));
    const Estimate tokens = simulate(task, at, c.L, c.L > 60 ? 8000 : 40000);
    const Estimate exact = softmax_risk(task, at, c.L, {11, 8}, Stream(5));
    EXPECT_TRUE(agree(tokens, exact))
        << "d = " << c.d << " L = " << c.L << ": tokens " << tokens.value << " +- "
        << tokens.std_error << ", exact " << exact.value << " +- " << exact.std_error;
    EXPECT_LT(exact.std_error, tokens.std_error);
  }
}

// Eight sets of nodes tell their error if their averages are nearly normal: then the interval covers as
// often as it says, and the median of s^2 is that of chi-square with 7 degrees of freedom, 6.35/7 of
// its mean. Sets that are mostly far better than their mean square error and seldom far worse cover
// too often, with a median of a hundredth.
TEST(SoftmaxRisk, SetsOfNodesTellTheirError) {
  const LinearRegressionTask task = LinearRegressionTask::isotropic(1);
  const Readout at = testing::two_token_head(0.5, 1);
  const double truth = testing::two_token_risk(0.5, 1);
  testing::Coverage c{.seeds = 400};
  std::vector<double> stated;
  double squares = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Estimate risk = softmax_risk(task, at, 2, {9, 8}, Stream(seed));
    ASSERT_FALSE(risk.heavy);
    c.held += student_interval(risk.value, risk.std_error, 7).contains(truth) ? 1 : 0;
    stated.push_back(risk.std_error * risk.std_error);
    squares += std::pow(risk.value - truth, 2) / 400;
  }
  testing::expect_calibrated(c, "eight sets of nodes");
  EXPECT_TRUE(close(median(stated) / squares, 6.35 / 7, 0.4));
}

TEST(SoftmaxRisk, GradientIsTheDifference) {
  for (double scale : {0.002, 0.5, 2.0}) {
    const LinearRegressionTask task = general_task(3, Stream(6));
    const SoftmaxRisk risk(task, 30, regression_nodes(task, 9, Stream(7)));
    const Readout at = random_readout(4, scale, Stream(8));
    EXPECT_TRUE(testing::readout_gradient_check(risk, at)) << "scale " << scale;
    const SoftmaxRisk plain(task, 30, regression_nodes(task, 9, Stream(7)), 0.0);
    EXPECT_TRUE(testing::readout_gradient_check(plain, at)) << "scale " << scale;
  }
}

TEST(SoftmaxRisk, TendsToTheLimit) {
  const LinearRegressionTask task = general_task(3, Stream(9));
  // No beta, small alpha: E e^{tau^2} is finite and the gap falls like 1/L.
  const Readout at = balanced_start(3, 0.3);
  const double limit = limit_risk(task, at);
  const Estimate near = softmax_risk(task, at, 10000, {10, 8}, Stream(11));
  const Estimate far = softmax_risk(task, at, 1000000, {10, 8}, Stream(11));
  EXPECT_TRUE(close((near.value - limit) / (far.value - limit), 100, 0.05));
  EXPECT_LT(far.std_error, 1e-5 * limit);
  // Quadrature alone, without the closed form of the infinite prompt, agrees with it.
  const RegressionNodes nodes = regression_nodes(task, 16, Stream(12));
  Vector errors(nodes.count());
  for (Index i = 0; i < errors.size(); ++i) {
    Vector query = Vector::Zero(4);
    query.head(3) = nodes.x.row(i);
    const Vector w = nodes.w.row(i);
    const double g = at.r.dot(token_covariance(task, w) * (at.U * query));
    errors(i) = std::pow(g - w.dot(nodes.x.row(i)), 2) / 2;
  }
  EXPECT_TRUE(close(errors.mean(), limit, 0.02));
  EXPECT_EQ(softmax_risk(task, at, Length::infinity(), {}, Stream(1)).value, limit);
}

TEST(SoftmaxRisk, SameBitsForAnyThreads) {
  const LinearRegressionTask task = general_task(3, Stream(12));
  const SoftmaxRisk risk(task, 100, regression_nodes(task, 11, Stream(13)));
  const Readout at = random_readout(4, 0.5, Stream(14));
  expect_same_bits_for_any_threads(risk, at);
}

TEST(SoftmaxRisk, FlowStaysInTheBlockAndBeatsItsStart) {
  const LinearRegressionTask task = LinearRegressionTask::with_covariance(power_covariance(3, 0.5));
  const SoftmaxRisk risk(task, 100, regression_nodes(task, 9, Stream(15)));
  const RiskFunction function = [&](const Readout& at, Readout* g) { return risk(at, g); };
  const Parametrisation space{ParameterSpace::UV, 4};
  FlowOptions options;
  options.stationary = 1e-7;
  const FlowResult flow =
      gradient_flow(function, space, parameters_of(space, balanced_start(3, 0.4)), options);
  ASSERT_EQ(flow.status, FlowStatus::stationary);
  const Readout end = space.readout(flow.end().theta);
  EXPECT_LT(end.U.col(3).norm() + end.U.row(3).norm() + end.r.head(3).norm(), 1e-9);
  EXPECT_LT(flow.largest_increase, 1e-9);
  EXPECT_LT(flow.energy_defect, 1e-6);
  EXPECT_LT(flow.end().risk, risk(block_optimum(task, Length::infinity())));
}

// Two tokens: U grows for a long time while ten entries stay zero. Steps must grow with the time,
// not be held back by rounding in those entries: as a tolerance for each of them would (100 times the steps), or as noise of
// Jacobians would, on which Newton's iterations fail (1459 to 3000 steps, by chance).
TEST(SoftmaxRisk, LongFlowsTakeFewSteps) {
  const LinearRegressionTask task = LinearRegressionTask::with_covariance(Matrix::Identity(2, 2));
  const SoftmaxRisk risk(task, 2, regression_nodes(task, 8, Stream(18)));
  const RiskFunction function = [&](const Readout& at, Readout* g) { return risk(at, g); };
  const Parametrisation space{ParameterSpace::UV, 3};
  FlowOptions options;
  options.max_steps = 700;
  const FlowResult flow =
      gradient_flow(function, space, parameters_of(space, balanced_start(2, 0.6)), options);
  EXPECT_EQ(flow.status, FlowStatus::stationary);
  EXPECT_GT(flow.end().t, 1e4);
}

// Scores of standard deviation 50 to 50000: softmax reads the token of the largest score.
TEST(SoftmaxRisk, SharpScoresAgreeWithTokens) {
  for (const double scale : {30.0, 3000.0}) {
    const LinearRegressionTask task = general_task(2, Stream(31));
    Readout at = random_readout(3, 1, Stream(32));
    at.U *= scale;
    const Estimate exact = softmax_risk(task, at, 6, {10, 8}, Stream(33));
    EXPECT_TRUE(agree(simulate(task, at, 6, 20000), exact)) << scale;
  }
}

TEST(SoftmaxRisk, RefusesWhatItCannotDo) {
  LinearRegressionTask task = general_task(2, Stream(16));
  const Readout huge = random_readout(3, 1e200, Stream(17));
  EXPECT_THROW(softmax_risk(task, huge, 10, {}, Stream(1)), DomainError);
  task.features = Features::sphere;
  EXPECT_THROW(softmax_risk(task, huge, 10, {}, Stream(1)), CapabilityError);
}

}  // namespace
}  // namespace esscher
