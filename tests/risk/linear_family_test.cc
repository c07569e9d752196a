// Regression with other laws of w and of covariances, against simulations in code of their own.
#include "esscher/task/linear_family.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/layer_risk.h"
#include "esscher/task/regression_nodes.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agree;
using testing::close;

constexpr double kNoise = 0.3;

// Two features.
LinearFamilyTask plain() {
  LinearFamilyTask task;
  task.task_cov = Matrix::Identity(2, 2);
  task.cov = Matrix{{1.0, 0.4}, {0.4, 0.8}};
  task.noise_variance = kNoise;
  return task;
}

Layer softmax_layer() {
  const Matrix U = Matrix{{0.5, 0.1, 0.0}, {0.0, 0.4, 0.0}, {0.0, 0.0, 0.0}};
  return {Matrix{{0.1, 0.0, 0.0}}, {{ModelKind::softmax, U, Matrix{{0.0, 0.1, 1.2}}}}};
}

// What a prompt is made of.
struct Drawn {
  Vector w;
  Matrix root;  // x = root g
};

// Half the squared error of the layer and of the best prediction, over drawn prompts.
struct Simulated {
  Estimate layer, best;
};

template <class Draw, class Best>
Simulated simulate(Index L, const Draw& draw, const Best& best) {
  const Layer layer = softmax_layer();
  const Stream stream(77);
  std::uint64_t next = 0;
  const auto normal = [&] { return stream.normal(next++); };
  const auto uniform = [&] { return stream.split(1).uniform(next++); };
  Moments of_layer, of_best;
  for (int n = 0; n < 20000; ++n) {
    const Drawn task = draw(normal, uniform);
    Matrix prompt(L, 3);
    for (Index l = 0; l < L; ++l) {
      const Vector x = task.root * Vector{{normal(), normal()}};
      prompt.row(l) << x.transpose(), task.w.dot(x) + std::sqrt(kNoise) * normal();
    }
    const Vector x = task.root * Vector{{normal(), normal()}};
    const Vector z{{x[0], x[1], 0.0}};
    const Vector scores = prompt * (layer.heads[0].U * z);
    const Vector omega = (scores.array() - scores.maxCoeff()).exp();
    const double said =
        (layer.W * z)[0] + (layer.heads[0].V * (prompt.transpose() * omega))[0] / omega.sum();
    const double target = task.w.dot(x);
    of_layer.add((said - target) * (said - target) / 2);
    const double guess = best(prompt).dot(x);
    of_best.add((guess - target) * (guess - target) / 2);
  }
  return {of_layer.estimate(Engine::direct), of_best.estimate(Engine::direct)};
}

// E[w | prompt] of w ~ N(0, T) as the regression of w on y: T X'(X T X' + noise)^{-1} y.
Vector ridge(const Matrix& T, const Matrix& prompt) {
  const Matrix X = prompt.leftCols(2);
  const Matrix K = X * T * X.transpose() + kNoise * Matrix::Identity(prompt.rows(), prompt.rows());
  return T * X.transpose() * K.inverse() * prompt.col(2);
}

Matrix root_of(const Matrix& cov) {
  Matrix out = Matrix::Zero(2, 2);  // Cholesky
  out(0, 0) = std::sqrt(cov(0, 0));
  out(1, 0) = cov(1, 0) / out(0, 0);
  out(1, 1) = std::sqrt(cov(1, 1) - out(1, 0) * out(1, 0));
  return out;
}

void expect_simulated(const LinearFamilyTask& given, Index L, const Simulated& drawn) {
  const ContextTask task = linear_family_task(given);
  EXPECT_TRUE(agree(drawn.layer, layer_risk(task, softmax_layer(), L, {})));
  const ReferenceRisks best = reference_risks(task, L, {.draws = 20000});
  EXPECT_FALSE(best.bayes_is_bound());
  EXPECT_TRUE(agree(drawn.best, best.bayes));
}

TEST(LinearFamily, IsRegressionWithoutItsOwnLaws) {
  LinearRegressionTask same = LinearRegressionTask::with_covariance(plain().cov);
  same.noise_variance = kNoise;
  const ContextTask a = linear_family_task(plain()), b = regression_task_nodes(same);
  for (const Length L : {Length(5), Length::infinity()}) {
    EXPECT_TRUE(close(layer_risk(a, softmax_layer(), L, {}).value,
                      layer_risk(b, softmax_layer(), L, {}).value, 1e-3))
        << L.text();
  }
}

TEST(LinearFamily, TasksOfLowRankAgreeWithBruteForce) {
  LinearFamilyTask task = plain();
  const Vector along{{1.0, -0.5}};
  task.task_cov = along * along.transpose();  // rank one
  const Matrix root = root_of(task.cov);
  expect_simulated(task, 4,
                   simulate(
                       4,
                       [&](auto& normal, auto&) {
                         return Drawn{normal() * along, root};
                       },
                       [&](const Matrix& prompt) { return ridge(task.task_cov, prompt); }));
}

TEST(LinearFamily, SparseTasksAgreeWithBruteForce) {
  LinearFamilyTask task = plain();
  task.nonzero = 1;
  const Matrix root = root_of(task.cov);
  // Both sets have the density of y ~ N(0, x_i x_i' + noise), by its determinant and inverse.
  const auto best = [&](const Matrix& prompt) {
    Vector sum = Vector::Zero(2);
    double weights = 0;
    for (Index i = 0; i < 2; ++i) {
      Matrix T = Matrix::Zero(2, 2);
      T(i, i) = 1;
      const Matrix X = prompt.leftCols(2);
      const Matrix K =
          X * T * X.transpose() + kNoise * Matrix::Identity(prompt.rows(), prompt.rows());
      const Vector y = prompt.col(2);
      const double density = std::exp(-0.5 * y.dot(K.inverse() * y)) / std::sqrt(K.determinant());
      weights += density;
      sum += density * ridge(T, prompt);
    }
    return Vector(sum / weights);
  };
  const auto draw = [&](auto& normal, auto& uniform) {
    Vector w = Vector::Zero(2);
    w[uniform() < 0.5 ? 0 : 1] = normal();
    return Drawn{w, root};
  };
  expect_simulated(task, 3, simulate(3, draw, best));
}

TEST(LinearFamily, DrawnCovariancesAgreeWithBruteForce) {
  LinearFamilyTask task = plain();
  const Matrix root = root_of(task.cov);
  const auto best = [&](const Matrix& prompt) { return ridge(task.task_cov, prompt); };
  task.cov_law = CovarianceLaw::scale;
  task.scale_deviation = 0.8;
  const auto scaled = [&](auto& normal, auto&) {
    const double s = std::exp(0.8 * normal() - 0.32);
    return Drawn{Vector{{normal(), normal()}}, std::sqrt(s) * root};
  };
  expect_simulated(task, 4, simulate(4, scaled, best));
  task.cov_law = CovarianceLaw::wishart;
  task.degrees = 3;
  const auto wishart = [&](auto& normal, auto&) {
    Matrix C = Matrix::Zero(2, 2);
    for (int i = 0; i < 3; ++i) {
      const Vector g = root * Vector{{normal(), normal()}};
      C += g * g.transpose() / 3;
    }
    return Drawn{Vector{{normal(), normal()}}, root_of(C)};
  };
  expect_simulated(task, 4, simulate(4, wishart, best));
}

// Labels without noise: as many tokens as features determine w.
TEST(LinearFamily, WithoutNoiseThePromptTellsEverything) {
  LinearFamilyTask task = plain();
  task.noise_variance = 0;
  EXPECT_LT(reference_risks(linear_family_task(task), 3, {}).bayes.value, 1e-4);
  EXPECT_GT(reference_risks(linear_family_task(task), 1, {}).bayes.value, 0.05);
  task.nonzero = 3;
  EXPECT_THROW(linear_family_task(task), ArgumentError);
}

}  // namespace
}  // namespace esscher
