#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/layer_risk.h"
#include "esscher/task/classification.h"
#include "tests/gradient_check.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agree;
using testing::close;
using testing::message_of;

// Classes at +-m in one dimension, of unit variance.
ContextTask classes_at(double m) {
  ClassificationTask task;
  task.means.fixed = Matrix{{m}, {-m}};
  task.cov = Matrix::Identity(1, 1);
  task.loss = TaskLoss::logistic;
  return classification_task(task);
}

ContextTask drawn_classes() {
  ClassificationTask task;
  task.means = {.law = MeansLaw::gaussian, .fixed = {}, .count = 2, .dim = 2, .scale = 1.5};
  task.weights = Vector{{0.3, 0.7}};
  task.cov = Matrix{{1.0, 0.3}, {0.3, 0.7}};
  task.loss = TaskLoss::logistic;
  return classification_task(task);
}

// Scores u x'x of features, v times the mean label, w the residual.
Layer reader(ModelKind kind, Index d, double u, double v, double w) {
  Matrix U = Matrix::Zero(d + 1, d + 1), V = Matrix::Zero(1, d + 1), W = Matrix::Zero(1, d + 1);
  U.topLeftCorner(d, d) = u * Matrix::Identity(d, d);
  V(0, d) = v;
  W(0, 0) = w;
  return {W, {{kind, U, V}}};
}

// The mean of f(x, y) over x | y ~ N(m y, 1), y = +-1, by a trapezoidal rule.
template <class F>
double mean_over_classes(double m, const F& f) {
  double sum = 0;
  for (const double y : {1.0, -1.0}) {
    for (int i = -4000; i <= 4000; ++i) {
      const double g = i / 400.0;
      sum += std::exp(-g * g / 2) / std::sqrt(2 * M_PI) / 400 * 0.5 * f(m * y + g, y);
    }
  }
  return sum;
}

double logistic(double out, double y) { return std::log(1 + std::exp(-y * out)); }

TEST(LogisticRisk, AnInfinitePromptByHand) {
  const double m = 0.8, u = 0.7, v = 1.3, w = 0.2;
  const double by_hand = mean_over_classes(
      m, [&](double x, double y) { return logistic(v * std::tanh(u * x * m) + w * x, y); });
  const Layer layer = reader(ModelKind::softmax, 1, u, v, w);
  EXPECT_TRUE(
      close(layer_risk(classes_at(m), layer, Length::infinity(), {}).value, by_hand, 1e-10));
}

// In code of its own: softmax of drawn tokens, and the loss of a drawn label.
TEST(LogisticRisk, AgreesWithBruteForce) {
  const Layer layer = reader(ModelKind::softmax, 2, 0.6, 1.4, 0.3);
  const Matrix root = psd_sqrt("test", "cov", Matrix{{1.0, 0.3}, {0.3, 0.7}});
  const Stream normals(3, 1), uniforms(3, 2);
  std::uint64_t next = 0;
  const auto draw = [&](const Matrix& means, Vector& x) {
    const double y = uniforms.uniform(next++) < 0.3 ? 1 : -1;
    const Vector g{{normals.normal(next), normals.normal(next + 1)}};
    next += 2;
    x = means.row(y > 0 ? 0 : 1).transpose() + root * g;
    return y;
  };
  Moments losses;
  for (int i = 0; i < 20000; ++i) {
    Matrix means(2, 2);
    for (double& entry : means.reshaped()) entry = 1.5 * normals.normal(next++);
    Vector query, x;
    const double label = draw(means, query);
    double weights = 0, labels = 0;
    for (int l = 0; l < 6; ++l) {
      const double y = draw(means, x), weight = std::exp(0.6 * query.dot(x));
      weights += weight;
      labels += weight * y;
    }
    losses.add(logistic(1.4 * labels / weights + 0.3 * query[0], label));
  }
  const Estimate risk = layer_risk(drawn_classes(), layer, 6, {.draws = 20000});
  EXPECT_EQ(risk.engine, Engine::direct);
  EXPECT_TRUE(agree(losses.estimate(Engine::direct), risk));
}

// The log odds of two classes +-m are 2 m x: linear in x, and so are they for linear attention with
// U = 2, which sees E[y x] = m.
TEST(LogisticRisk, BayesIsTheEntropyAndALinearHead) {
  const double m = 0.8;
  const ContextTask task = classes_at(m);
  const ReferenceRisks best = reference_risks(task, Length::infinity(), {});
  const double by_hand =
      mean_over_classes(m, [&](double x, double y) { return logistic(2 * m * x, y); });
  EXPECT_TRUE(close(best.bayes.value, by_hand, 1e-10));
  EXPECT_TRUE(close(best.linear.value, by_hand, 1e-10));
  EXPECT_TRUE(close(best.affine.value, by_hand, 1e-10));
  const Layer linear = reader(ModelKind::linear, 1, 2, 1, 0);
  EXPECT_TRUE(close(layer_risk(task, linear, Length::infinity(), {}).value, by_hand, 1e-10));
  // The control: half of these odds, and the squared loss.
  EXPECT_GT(layer_risk(task, reader(ModelKind::linear, 1, 1, 1, 0), Length::infinity(), {}).value,
            1.02 * by_hand);
}

TEST(LogisticRisk, BayesIsNeverBeaten) {
  ClassificationTask unequal;
  unequal.means.fixed = Matrix{{1.0, 0.2}, {-0.6, 0.4}};
  unequal.weights = Vector{{0.3, 0.7}};
  unequal.cov = Matrix{{1.0, 0.3}, {0.3, 0.7}};
  unequal.loss = TaskLoss::logistic;
  for (const ContextTask& task : {classification_task(unequal), drawn_classes()}) {
    for (const Length L : {Length(3), Length(40), Length::infinity()}) {
      const RiskOptions few{.log2_nodes = 9, .draws = 1000};
      const ReferenceRisks best = reference_risks(task, L, few);
      const double bound = best.bayes.value - 6 * best.bayes.std_error;
      EXPECT_LE(bound, best.affine.value);
      EXPECT_LE(best.affine.value, best.linear.value + 1e-12);
      EXPECT_LT(best.affine.value, -0.3 * std::log(0.3) - 0.7 * std::log(0.7) + 1e-3);
      for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
        for (const double u : {0.3, 1.0}) {
          const Estimate risk = layer_risk(task, reader(kind, 2, u, 1.5, 0.1), L, few);
          EXPECT_GE(risk.value + 6 * risk.std_error, bound) << L.text() << " u " << u;
        }
      }
    }
  }
}

TEST(LogisticRisk, HasItsExactGradient) {
  for (const Length L : {Length(5), Length::infinity()}) {
    Layer layer = reader(ModelKind::softmax, 2, 0.6, 1.4, 0.3);
    layer.heads.push_back(reader(ModelKind::linear, 2, 0.4, 0.7, 0).heads[0]);
    const LayerRiskFunction f =
        layer_risk_function(drawn_classes(), layer, L, {.log2_nodes = 6, .draws = 50});
    Layer gradient;
    (void)f(layer, &gradient);
    EXPECT_TRUE(testing::gradient_check(
        [&](const Vector& theta) { return f(layer.with(theta), nullptr); }, layer.parameters(),
        gradient.parameters(), {.step = 1e-2, .relative = 1e-7, .rounding = 1e-12}));
  }
}

TEST(LogisticRisk, LossesDoNotOverflow) {
  Vector slope;
  const auto loss = [&](double out, double mean) {
    return prediction_loss(TaskLoss::logistic, Vector::Constant(1, out), Vector::Constant(1, mean),
                           slope);
  };
  EXPECT_EQ(loss(1e6, 1), 0);
  EXPECT_EQ(loss(-1e6, 1), 1e6);
  EXPECT_EQ(slope[0], -1);
  EXPECT_TRUE(close(loss(0.7, 0.2), 0.6 * logistic(0.7, 1) + 0.4 * logistic(0.7, -1), 1e-14));
  EXPECT_EQ(least_loss(TaskLoss::logistic, Vector::Constant(1, 1.0), 0), 0);
}

TEST(LogisticRisk, WhatHasNoFormulaIsRefused) {
  const Layer layer = reader(ModelKind::softmax, 1, 1, 1, 0);
  EXPECT_NE(message_of<CapabilityError>([&] {
              return layer_risk(classes_at(1), layer, 10, {.engine = Engine::exact});
            }).find("the logistic loss has no formula at L = 10"),
            std::string::npos);
}

TEST(LogisticRisk, RowsNameTheLoss) {
  const LayerProblem problem{.task = classes_at(1),
                             .layer = reader(ModelKind::softmax, 1, 1, 1, 0),
                             .lengths = {Length::infinity()},
                             .risk = {}};
  for (const RiskRow& row : layer_risk_rows(problem)) EXPECT_EQ(row.loss, TaskLoss::logistic);
}

}  // namespace
}  // namespace esscher
