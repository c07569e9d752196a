#include "esscher/paper/pretraining.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "esscher/estimate/moments.h"
#include "esscher/risk/closed_form.h"
#include "tests/testing.h"

namespace esscher::paper {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The quadratic form against contexts that are drawn.
TEST(Pretraining, ErrorOfAFitIsThatOnFreshContexts) {
  const Pretraining setting{.dim = 3, .alpha = 2, .rho = 0.3};
  const Index d = 3, l = 6;
  const Matrix Gamma = testing::random_matrix(Stream(1), d, d + 1, 0.5);
  Moments errors;
  for (std::uint64_t i = 0; i < 40000; ++i) {
    const Stream stream = Stream(2).split(i);
    const Vector w = testing::random_matrix(stream.split(0), 1, d).row(0).transpose();
    const Matrix x = testing::random_matrix(stream.split(1), l + 1, d) / std::sqrt(3.0);
    const Vector noise = testing::random_matrix(stream.split(2), 1, l + 1).row(0).transpose();
    const Vector y = x * w + std::sqrt(0.3) * noise;
    Vector v(d + 1);
    v << x.topRows(l).transpose() * y.head(l) * (3.0 / 6), y.head(l).squaredNorm() / 6;
    errors.add(std::pow(x.row(l).dot(Gamma * v) - y(l), 2));
  }
  EXPECT_TRUE(testing::agrees(errors.estimate(Engine::direct), context_error(setting, Gamma)));
}

// With many contexts the fit is the best linear head, whose error the closed form of a task knows.
TEST(Pretraining, ManyContextsFindTheBestHead) {
  LinearRegressionTask task = LinearRegressionTask::isotropic(3);
  task.prompt_cov /= 3;
  task.query_cov /= 3;
  task.noise_variance = 0.3;
  task.query_noise = true;
  const double best = 2 * linear_risk(task, block_optimum(task, 6), 6);
  const Pretraining setting{.dim = 3, .alpha = 2, .tau = 2000, .rho = 0.3};
  const double found = fitted_error(setting, Stream(4));
  EXPECT_GT(found, best);
  EXPECT_LT(found, 1.01 * best);
}

TEST(Pretraining, TheLimitHasItsKnownEnds) {
  for (const double alpha : {1.0, 10.0}) {
    const double x = 1.01 / alpha;
    EXPECT_NEAR(proportional_error(1e12, alpha, kInfinity, 0.01), 0.01 + x / (1 + x), 1e-9);
    // No contexts: the prediction is 0.
    EXPECT_NEAR(proportional_error(1e-12, alpha, 0.5, 0.01), 1.01, 1e-9);
    EXPECT_GT(proportional_error(0.999, alpha, 0.5, 0.01), 50);
    EXPECT_GT(proportional_error(1.001, alpha, 0.5, 0.01), 50);
    EXPECT_NEAR(proportional_error(3, alpha, 1e12, 0.01),
                proportional_error(3, alpha, kInfinity, 0.01), 1e-9);
  }
}

}  // namespace
}  // namespace esscher::paper
