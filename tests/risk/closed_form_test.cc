#include "esscher/risk/closed_form.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>

#include "esscher/base/error.h"
#include "esscher/risk/bayes.h"
#include "tests/risk/regression_cases.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using testing::general_task;
using testing::random_readout;

// Half squared errors of linear attention on real tokens; L = 0 stands for the infinite prompt.
Vector simulate_linear(const LinearRegressionTask& task, const Readout& at, Index L, Index n) {
  const RegressionSampler sampler(task);
  Vector out(n);
  for (Index i = 0; i < n; ++i) {
    const Stream stream = Stream(7, 11).split(i);
    const RegressionDraw draw = sampler.draw(stream);
    Vector query = Vector::Zero(task.dim + 1);
    query.head(task.dim) = draw.x;
    Matrix G = token_covariance(task, draw.w);
    if (L > 0) {
      const Matrix z = sampler.prompt(draw.w, L, stream.split(9));
      G = z.transpose() * z / double(L);
    }
    const double error = at.r.dot(G * at.U * query) - draw.y;
    out(i) = error * error / 2;
  }
  return out;
}

TEST(Risk, LimitAgreesWithSimulation) {
  for (Index d : {1, 2, 5}) {
    LinearRegressionTask task = general_task(d, Stream(1).split(d));
    task.query_noise = d == 2;
    const Readout at = random_readout(d + 1, 0.4, Stream(2).split(d));
    const Estimate simulated = testing::mean_of(simulate_linear(task, at, 0, 200000));
    EXPECT_TRUE(agrees(simulated, limit_risk(task, at))) << "d = " << d;
  }
}

TEST(Risk, LinearAgreesWithSimulationOfTokens) {
  for (Index d : {1, 3}) {
    for (Index L : {1, 4, 20}) {
      const LinearRegressionTask task = general_task(d, Stream(3).split(d));
      const Readout at = random_readout(d + 1, 0.4, Stream(4).split(d));
      const Estimate simulated = testing::mean_of(simulate_linear(task, at, L, 100000));
      EXPECT_TRUE(agrees(simulated, linear_risk(task, at, L))) << "d = " << d << " L = " << L;
    }
  }
}

TEST(Risk, GradientsAreDifferences) {
  for (Index d : {1, 4}) {
    const LinearRegressionTask task = general_task(d, Stream(5).split(d));
    const Readout at = random_readout(d + 1, 0.5, Stream(6).split(d));
    for (const Length L : {Length(1), Length(7), Length::infinity()}) {
      const auto risk = [&](const Readout& p, Readout* g) { return linear_risk(task, p, L, g); };
      EXPECT_TRUE(testing::readout_gradient_check(risk, at)) << "d = " << d << " L = " << L.text();
    }
  }
}

TEST(Risk, LinearTendsToLimit) {
  const LinearRegressionTask task = general_task(3, Stream(8));
  const Readout at = random_readout(4, 0.5, Stream(9));
  const double limit = limit_risk(task, at), gap = linear_risk(task, at, 1) - limit;
  EXPECT_GT(gap, 0);
  EXPECT_TRUE(close(linear_risk(task, at, 1000) - limit, gap / 1000, 1e-9));
}

TEST(Risk, BlockOptimumIsStationaryAndBest) {
  for (const Length N : {Length(10), Length(100), Length::infinity()}) {
    LinearRegressionTask task = general_task(4, Stream(10));
    task.noise_variance = 0.2;
    const Readout best = block_optimum(task, N, 0.3);
    Readout gradient;
    const double risk = linear_risk(task, best, N, &gradient);
    EXPECT_LT(gradient.norm(), 1e-12) << N.text();
    EXPECT_TRUE(close(best.U.squaredNorm() - best.r.squaredNorm(), 0.3, 1e-12));
    Readout near = best;
    near.U(0, 1) += 0.01;
    EXPECT_GT(linear_risk(task, near, N), risk);
  }
}

TEST(Risk, NonGaussianFeaturesAreRefused) {
  LinearRegressionTask task = LinearRegressionTask::isotropic(2);
  task.features = Features::rademacher;
  EXPECT_THROW(limit_risk(task, Readout::zero(3)), CapabilityError);
  EXPECT_THROW(limit_risk(LinearRegressionTask::isotropic(3), Readout::zero(3)), DimensionError);
}

TEST(Bayes, AgreesWithRidgeOnTokens) {
  LinearRegressionTask task = general_task(3, Stream(12));
  task.query_noise = true;
  const RegressionSampler sampler(task);
  for (Index L : {1, 2, 10}) {
    Vector errors(40000);
    for (Index i = 0; i < errors.size(); ++i) {
      const Stream stream = Stream(13).split(i);
      const RegressionDraw draw = sampler.draw(stream);
      const Matrix z = sampler.prompt(draw.w, L, stream.split(5));
      const Matrix X = z.leftCols(3);
      const Matrix A =
          X.transpose() * X + task.noise_variance / task.task_variance * Matrix::Identity(3, 3);
      const Vector w = A.llt().solve(X.transpose() * z.col(3));
      errors(i) = std::pow(w.dot(draw.x) - draw.y, 2) / 2;
    }
    const Estimate bayes = bayes_risk(task, L, 4000, Stream(14));
    EXPECT_TRUE(testing::agree(testing::mean_of(errors), bayes)) << "L = " << L;
  }
}

TEST(Bayes, EndsOfTheScale) {
  LinearRegressionTask task = general_task(3, Stream(15));
  EXPECT_EQ(bayes_risk(task, Length::infinity(), 2, Stream(1)).value, 0);
  EXPECT_TRUE(close(bayes_risk(task, 0, 2, Stream(1)).value,
                    task.task_variance * task.query_cov.trace() / 2, 1e-12));
  task.noise_variance = 0;
  EXPECT_EQ(bayes_risk(task, 3, 2, Stream(1)).value, 0);
  // Noise-free with L < d: the projection off L directions.
  task.query_cov = task.prompt_cov = Matrix::Identity(3, 3);
  EXPECT_TRUE(close(bayes_risk(task, 2, 100, Stream(1)).value, task.task_variance / 2, 1e-9));
}

// A small variance is not none: two rows of N(0, diag(1, 1e-11)) show both directions.
TEST(Bayes, SmallVariancesAreSeenWithoutNoise) {
  LinearRegressionTask task = LinearRegressionTask::isotropic(2);
  for (const double small : {1e-9, 1e-11, 1e-13}) {
    task.prompt_cov(1, 1) = small;
    EXPECT_EQ(bayes_risk(task, 5, 2, Stream(1)).value, 0) << small;
    EXPECT_EQ(bayes_risk(task, Length::infinity(), 2, Stream(1)).value, 0) << small;
    task.features = Features::uniform;  // rows are drawn
    EXPECT_TRUE(close(bayes_risk(task, 5, 20, Stream(1)).value, 0, 1e-12, 1)) << small;
    task.features = Features::gaussian;
    // One row x shows the direction x alone: |x|^2 / |x|^2 of the query's variance 1 + 1.
    EXPECT_TRUE(close(bayes_risk(task, 1, 20, Stream(1)).value, 0.5, 1e-9)) << small;
  }
  // What Sigma never shows stays unknown, with noise or without.
  task.prompt_cov(1, 1) = 0;
  for (const Length L : {Length(1), Length(5), Length::infinity()}) {
    EXPECT_TRUE(close(bayes_risk(task, L, 20, Stream(2)).value, 0.5, 1e-12)) << L.text();
  }
}

}  // namespace
}  // namespace esscher
