#include "esscher/training/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

Vector pair(double x, double y) {
  Vector v(2);
  v(0) = x;
  v(1) = y;
  return v;
}

TEST(Optimizer, StepsAreTheTextbookOnes) {
  const Vector g = pair(0.5, -2);
  Vector theta = pair(1, 1);
  OptimizerState state;
  OptimizerOptions sgd{.kind = OptimizerKind::sgd, .learning_rate = 0.1, .momentum = 0.9};
  optimizer_step(sgd, 1, g, theta, state);
  EXPECT_TRUE(close(theta, pair(0.95, 1.2), 1e-15));
  optimizer_step(sgd, 2, g, theta, state);  // buffer 1.9 g
  EXPECT_TRUE(close(theta, pair(0.855, 1.58), 1e-15));

  theta = pair(1, 1);
  state = {};
  OptimizerOptions adam{.kind = OptimizerKind::adam, .learning_rate = 0.1, .epsilon = 1e-8};
  optimizer_step(adam, 1, g, theta, state);  // the first step has length lr g/(|g| + eps)
  EXPECT_TRUE(close(theta(0), 1 - 0.1 * 0.5 / (0.5 + 1e-8), 1e-14));
  EXPECT_TRUE(close(theta(1), 1 + 0.1 * 2 / (2 + 1e-8), 1e-14));
  optimizer_step(adam, 2, 2 * g, theta, state);
  const double m = (0.9 * 0.1 * 0.5 + 0.1 * 1.0) / (1 - 0.81);
  const double v = (0.999 * 0.001 * 0.25 + 0.001 * 1.0) / (1 - 0.999 * 0.999);
  EXPECT_TRUE(
      close(theta(0), 1 - 0.1 * 0.5 / (0.5 + 1e-8) - 0.1 * m / (std::sqrt(v) + 1e-8), 1e-13));

  theta = pair(1, 1);
  state = {};
  OptimizerOptions adamw = adam;
  adamw.kind = OptimizerKind::adamw;
  adamw.weight_decay = 0.5;
  optimizer_step(adamw, 1, g, theta, state);
  EXPECT_TRUE(close(theta(0), 0.95 - 0.1 * 0.5 / (0.5 + 1e-8), 1e-14));

  theta = pair(1, 1);
  state = {};
  sgd.weight_decay = 0.5;
  sgd.momentum = 0;
  optimizer_step(sgd, 1, g, theta, state);
  EXPECT_TRUE(close(theta, pair(0.9, 1.15), 1e-15));
}

TEST(Optimizer, LongGradientsAreShortened) {
  const Vector g = pair(3, -4);
  OptimizerOptions sgd{.learning_rate = 0.1, .clip = 1.0};
  OptimizerState state;
  Vector theta = pair(1, 1);
  optimizer_step(sgd, 1, g, theta, state);
  EXPECT_TRUE(close(theta, pair(0.94, 1.08), 1e-15));
  theta = pair(1, 1);
  sgd.clip = 5.0;
  optimizer_step(sgd, 1, g, theta, state);
  EXPECT_TRUE(close(theta, pair(0.7, 1.4), 1e-15));
}

}  // namespace
}  // namespace esscher
