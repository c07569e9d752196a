#include "esscher/risk/task_gradient.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/closed_form.h"
#include "tests/gradient_check.h"
#include "tests/risk/regression_cases.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::general_task;
using testing::gradient_check;
using testing::random_readout;

Matrix symmetric(const Matrix& A) { return 0.5 * (A + A.transpose()); }

using Value = std::function<double(const LinearRegressionTask&)>;

// The risk as a function of one parameter of the task against its claimed derivative.
::testing::AssertionResult noise_check(const Value& f, LinearRegressionTask task, double slope) {
  const auto at = [=](const Vector& x) mutable {
    task.noise_variance = x(0);
    return f(task);
  };
  return gradient_check(std::function<double(const Vector&)>(at),
                        Vector::Constant(1, task.noise_variance), Vector::Constant(1, slope));
}

::testing::AssertionResult variance_check(const Value& f, LinearRegressionTask task, double slope) {
  const auto at = [=](const Vector& x) mutable {
    task.task_variance = x(0);
    return f(task);
  };
  return gradient_check(std::function<double(const Vector&)>(at),
                        Vector::Constant(1, task.task_variance), Vector::Constant(1, slope));
}

::testing::AssertionResult prompt_check(const Value& f, LinearRegressionTask task,
                                        const Matrix& slope) {
  const Matrix S = task.prompt_cov;
  const auto at = [=](const Matrix& x) mutable {
    task.prompt_cov = symmetric(x);
    return f(task);
  };
  return gradient_check(std::function<double(const Matrix&)>(at), S, slope);
}

::testing::AssertionResult query_check(const Value& f, LinearRegressionTask task,
                                       const Matrix& slope) {
  const Matrix S = task.query_cov;
  const auto at = [=](const Matrix& x) mutable {
    task.query_cov = symmetric(x);
    return f(task);
  };
  return gradient_check(std::function<double(const Matrix&)>(at), S, slope);
}

TEST(TaskGradient, OfClosedFormsIsTheDifference) {
  for (const Length L : {Length(1), Length(7), Length::infinity()}) {
    for (const bool noisy : {false, true}) {
      LinearRegressionTask task = general_task(3, Stream(1));
      task.noise_variance = 0.4;
      task.query_noise = noisy;
      const Readout at = random_readout(4, 0.7, Stream(2));
      const Value f = [&](const LinearRegressionTask& t) { return linear_risk(t, at, L); };
      const TaskGradient g = linear_task_gradient(task, at, L);
      EXPECT_TRUE(noise_check(f, task, g.noise_variance)) << L.text();
      EXPECT_TRUE(variance_check(f, task, g.task_variance)) << L.text();
      EXPECT_TRUE(prompt_check(f, task, g.prompt_cov)) << L.text();
      EXPECT_TRUE(query_check(f, task, g.query_cov)) << L.text();
    }
  }
}

// Nodes that move with the task: x = Sq^{1/2} xi and w = s2^{1/2} u. For a diagonal Sq the points
// move as the formula says, so differences of the quadrature agree to rounding.
TEST(TaskGradient, OfSoftmaxIsTheDifferenceOnTheSameNodes) {
  for (const std::int64_t L : {1, 5, 200}) {
    for (const double scale : {0.3, 1.5}) {
      LinearRegressionTask task = general_task(2, Stream(3));
      task.query_cov = Vector{{0.5, 2.0}}.asDiagonal();
      task.noise_variance = 0.3;
      task.query_noise = L == 5;
      const Readout at = random_readout(3, scale, Stream(4));
      const NodeTables tables(L);
      const auto nodes = [](const LinearRegressionTask& t) {
        return regression_nodes(t, 7, Stream(5));
      };
      const Value f = [&](const LinearRegressionTask& t) {
        return SoftmaxRisk(t, tables, nodes(t))(at);
      };
      const TaskGradient g = softmax_task_gradient(task, at, tables, nodes(task));
      EXPECT_TRUE(noise_check(f, task, g.noise_variance)) << L << " " << scale;
      EXPECT_TRUE(variance_check(f, task, g.task_variance)) << L << " " << scale;
      EXPECT_TRUE(prompt_check(f, task, g.prompt_cov)) << L << " " << scale;
      for (Index i = 0; i < 2; ++i) {
        const auto moved = [&](const Vector& x) {
          LinearRegressionTask t = task;
          t.query_cov(i, i) = x(0);
          return f(t);
        };
        EXPECT_TRUE(gradient_check(std::function<double(const Vector&)>(moved),
                                   Vector::Constant(1, task.query_cov(i, i)),
                                   Vector::Constant(1, g.query_cov(i, i))))
            << L << " " << scale << " entry " << i;
      }
    }
  }
}

// Widened nodes and a covariance that is not diagonal: against differences of risks, within errors.
TEST(TaskGradient, OfSoftmaxAgreesWithIndependentRisks) {
  LinearRegressionTask task = general_task(2, Stream(6));
  task.noise_variance = 0.2;
  const Readout at = random_readout(3, 0.5, Stream(7));
  const Matrix D{{0.3, -0.7}, {-0.7, 0.1}};
  // A central difference of order 4 of risks on independent nodes.
  const double h = 0.05, factors[] = {1, -8, 8, -1}, steps[] = {-2 * h, -h, h, 2 * h};
  double difference = 0, variance = 0;
  for (int i = 0; i < 4; ++i) {
    LinearRegressionTask t = task;
    t.query_cov += steps[i] * D;
    const Estimate risk = softmax_risk(t, at, 20, {.log2_nodes = 15, .scramblings = 8}, Stream(8));
    difference += factors[i] * risk.value / (12 * h);
    variance += std::pow(factors[i] * risk.std_error / (12 * h), 2);
  }
  Moments slopes;
  for (std::uint64_t i = 0; i < 8; ++i) {
    const RiskOptions options{.log2_nodes = 13, .stream = Stream(9).split(i)};
    const TaskGradient g = task_gradient(task, at, ModelKind::softmax, 20, options);
    slopes.add(g.query_cov.cwiseProduct(D).sum());
  }
  const Estimate gap{slopes.mean() - difference,
                     std::sqrt(variance + slopes.std_error() * slopes.std_error()), 8,
                     Engine::quadrature};
  EXPECT_TRUE(testing::agrees(gap, 0)) << slopes.mean() << " " << difference;
  EXPECT_LT(gap.std_error, 0.02 * std::abs(difference));
}

TEST(TaskGradient, SaysWhatItCannotDo) {
  LinearRegressionTask task = general_task(2, Stream(1));
  const Readout at = random_readout(3, 0.5, Stream(2));
  task.features = Features::rademacher;
  EXPECT_THROW((void)task_gradient(task, at, ModelKind::softmax, 10, {}), CapabilityError);
  task.features = Features::gaussian;
  task.query_cov = Matrix{{1.0, 0.0}, {0.0, 0.0}};
  task.task_variance = 0;
  const TaskGradient g = task_gradient(task, at, ModelKind::softmax, 10, {.log2_nodes = 6});
  EXPECT_TRUE(std::isnan(g.task_variance) && std::isnan(g.query_cov(0, 0)));
  EXPECT_TRUE(std::isfinite(g.noise_variance) && g.prompt_cov.allFinite());
  const TaskGradient limit = task_gradient(task, at, ModelKind::softmax, Length::infinity(), {});
  EXPECT_TRUE(std::isfinite(limit.task_variance) && limit.query_cov.allFinite());
}

}  // namespace
}  // namespace esscher
