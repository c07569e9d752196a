#include "esscher/training/layer_optimum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/risk/closed_form.h"
#include "esscher/task/classification.h"
#include "esscher/task/denoising.h"
#include "esscher/task/regression_nodes.h"
#include "esscher/task/single_index_task.h"
#include "esscher/training/layer_model.h"
#include "tests/gradient_check.h"
#include "tests/task/tasks.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

TEST(Minimise, FindsTheMinimumOfRosenbrock) {
  const SmoothFunction f = [](const Vector& x, Vector& g) {
    const double a = 1 - x[0], b = x[1] - x[0] * x[0];
    g = Vector{{-2 * a - 400 * x[0] * b, 200 * b}};
    return a * a + 100 * b * b;
  };
  const Minimum found = minimise(f, Vector{{-1.2, 1.0}});
  EXPECT_TRUE(found.converged);
  EXPECT_TRUE(close(found.x, Vector{{1.0, 1.0}}, 1e-6));
  const Minimum stopped = minimise(f, Vector{{-1.2, 1.0}}, {.max_evaluations = 5});
  EXPECT_FALSE(stopped.converged);
}

TEST(LayerFamily, GradientsArePulledBack) {
  for (const ContextTask& task :
       {denoising_task(testing::two_points(0.5, 0.6)), testing::two_classes()}) {
    for (const LayerFamily family :
         {LayerFamily::scalars, LayerFamily::diagonal, LayerFamily::full}) {
      const FamilyMap map(family, task, {ModelKind::softmax});
      const LayerRiskFunction f =
          layer_risk_function(task, map.layer(Vector::Zero(map.size())), 7, {});
      const Vector phi = Vector::LinSpaced(map.size(), 0.3, 0.7);
      Layer slope;
      (void)f(map.layer(phi), &slope);
      EXPECT_TRUE(testing::gradient_check([&](const Vector& x) { return f(map.layer(x), nullptr); },
                                          phi, map.pull_back(slope),
                                          {.step = 1e-2, .relative = 1e-6, .rounding = 1e-11}))
          << name(task.type) << " " << name(family);
    }
  }
  const FamilyMap labels(LayerFamily::scalars, testing::two_classes(), {ModelKind::softmax});
  EXPECT_EQ(labels.size(), 2);  // u and v
  EXPECT_EQ(labels.layer(Vector{{0.5, 2.0}}).heads[0].U, (Matrix{{0.5, 0.0}, {0.0, 0.0}}));
  EXPECT_EQ(labels.layer(Vector{{0.5, 2.0}}).heads[0].V, (Matrix{{0.0, 2.0}}));
}

// U = 1/S, V = xi^2/S, W = (gamma^2 - xi^2)/S is the posterior mean, hence the optimum.
TEST(LayerOptimum, AnInfinitePromptFindsThePosteriorMean) {
  const OptimumProblem problem{
      .task = denoising_task(testing::two_points(0.6, 0.9)), .lengths = {}, .risk = {}};
  const LayerOptimum best = layer_optimum(problem, Length::infinity());
  const double S = 0.36 + 0.81;
  EXPECT_TRUE(best.converged);
  EXPECT_TRUE(close(best.layer.heads[0].U(0, 0), 1 / S, 1e-4));
  EXPECT_TRUE(close(best.layer.heads[0].V(0, 0), 0.81 / S, 1e-4));
  EXPECT_TRUE(close(best.layer.W(0, 0), (0.36 - 0.81) / S, 1e-4));
}

// Short prompts ask for a sharp head, whose largest token tells the sign of the query; long ones
// for a head that is cooler than that of an infinite prompt.
TEST(LayerOptimum, FinitePromptsHaveOptimaOfTheirOwn) {
  const OptimumProblem problem{
      .task = denoising_task(testing::two_points(std::sqrt(0.5), std::sqrt(0.5))),
      .lengths = {Length(100), Length(10000), Length::infinity()},
      .restarts = 1,
      .risk = {}};
  const std::vector<OptimumRow> rows = compute_here(optimum_cells(problem));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_GT(*rows[0].u, 2 * *rows[2].u);
  EXPECT_LT(*rows[1].u, 0.8 * *rows[2].u);
  for (const OptimumRow& row : rows) {
    EXPECT_LE(row.risk, row.limit_risk + 1e-9);
    EXPECT_GE(row.risk, row.bayes - 1e-9);
    EXPECT_TRUE(row.converged);
  }
  EXPECT_LT(rows[0].risk, rows[0].affine);
  EXPECT_GT(rows[0].limit_risk, rows[0].affine);
  EXPECT_TRUE(close(rows[2].risk, rows[2].bayes, 1e-6));
  // Neighbours are worse.
  for (const double u : {0.9, 1.1}) {
    const Layer other{rows[1].W, {{ModelKind::softmax, u * rows[1].U, rows[1].V}}};
    EXPECT_GT(layer_risk(problem.task, other, 10000, {}).value, rows[1].risk);
  }
}

TEST(LayerOptimum, LinearRegressionEndsAtTheKnownOptimum) {
  LinearRegressionTask task = LinearRegressionTask::isotropic(2);
  task.noise_variance = 0.1;
  OptimumProblem problem{.task = regression_task_nodes(task),
                         .kinds = {ModelKind::linear},
                         .lengths = {},
                         .restarts = 1,
                         .risk = {.log2_nodes = 10}};
  const LayerOptimum best = layer_optimum(problem, 20);
  const Readout known = block_optimum(task, 20);
  const double found = best.layer.heads[0].U(0, 0) * best.layer.heads[0].V(0, 2);
  EXPECT_TRUE(close(found, known.U(0, 0) * known.r[2], 0.02));
  // The risk of the closed form, on nodes.
  const Layer at{Matrix::Zero(1, 3), {{ModelKind::linear, known.U, known.r.transpose()}}};
  const Estimate risk = layer_risk(problem.task, at, 20, {});
  EXPECT_TRUE(testing::agrees(risk, linear_risk(task, known, 20)));
}

TEST(LayerOptimum, SoftmaxBeatsLinearHeadsOnSigns) {
  SingleIndexTask task;
  task.cov = Matrix::Identity(1, 1);
  task.link = Link(LinkName::sign);
  const auto best = [&](ModelKind kind) {
    const OptimumProblem problem{.task = single_index_task(task),
                                 .kinds = {kind},
                                 .lengths = {},
                                 .restarts = 2,
                                 .risk = {.log2_nodes = 9}};
    return layer_optimum(problem, Length::infinity()).risk;
  };
  EXPECT_LT(best(ModelKind::softmax), 0.5 * best(ModelKind::linear));
}

TEST(LayerOptimum, RowsSayWhatLinearHeadsLoseOnSigns) {
  SingleIndexTask task;
  task.cov = Matrix::Identity(1, 1);
  task.link = Link(LinkName::sign);
  const OptimumProblem problem{.task = single_index_task(task),
                               .lengths = {Length::infinity()},
                               .restarts = 2,
                               .risk = {.log2_nodes = 9}};
  const OptimumRow row = compute_here(optimum_cells(problem))[0];
  // A linear head says c E[y x] x = c sign(w) sqrt(2/pi) x; the target is sign(w x), so that its
  // best risk is (1 - (E|x|)^2)/2.
  const double by_hand = 0.5 - 1 / std::numbers::pi;
  EXPECT_TRUE(close(*row.linear_heads, by_hand, 0.02));
  EXPECT_GT(*row.linear_heads, 2 * row.risk);
}

// Classes of equal weight: (U, V) and (-U, -V) predict the same. With unequal weights they do not.
TEST(LayerOptimum, OptimaOfClassesOfEqualWeightComeInTwoFamilies) {
  ClassificationTask classes;
  classes.cov = Matrix::Identity(1, 1);
  OptimumProblem problem{.task = {}, .lengths = {Length::infinity()}, .restarts = 1, .risk = {}};
  classes.means.fixed = Matrix{{1.0}, {-1.0}};
  problem.task = classification_task(classes);
  const LayerOptimum best = layer_optimum(problem, Length::infinity());
  const double sign = best.phi[0] > 0 ? 1 : -1;
  EXPECT_TRUE(close(best.phi[0], sign, 1e-3));
  EXPECT_TRUE(close(best.layer.heads[0].V(0, 1), sign, 1e-3));
  EXPECT_TRUE(close(best.mirror.heads[0].U(0, 0), -sign, 1e-3));
  EXPECT_TRUE(close(best.mirror.heads[0].V(0, 1), -sign, 1e-3));
  EXPECT_TRUE(close(best.mirror_risk, best.risk, 1e-9));
  classes.weights = Vector{{0.2, 0.8}};
  problem.task = classification_task(classes);
  const OptimumRow row = compute_here(optimum_cells(problem))[0];
  EXPECT_GT(*row.mirror_risk, row.risk + 5e-4);
}

// Without noise the largest of ten tokens tells the sign best, so that the search goes to scores
// without end. It says so, in seconds and in little memory.
TEST(LayerOptimum, SignsWithoutNoiseAskForInfiniteScores) {
  SingleIndexTask task;
  task.cov = Matrix::Identity(1, 1);
  task.link = Link(LinkName::sign);
  const OptimumProblem problem{.task = single_index_task(task),
                               .lengths = {},
                               .restarts = 1,
                               .risk = {.log2_nodes = 8, .scramblings = 2}};
  const LayerOptimum best = layer_optimum(problem, 10);
  EXPECT_TRUE(best.sharp);
  EXPECT_FALSE(best.converged);
  const double deviation =
      score_deviation(best.layer, problem.task.moments(problem.risk.stream.split(7)));
  EXPECT_GT(deviation, kSharpest);
  EXPECT_LE(deviation, 2 * kSharpest);
  const OptimumProblem finite{.task = denoising_task(testing::two_points(0.6, 0.9)),
                              .lengths = {},
                              .restarts = 1,
                              .risk = {}};
  EXPECT_FALSE(layer_optimum(finite, 100).sharp);
}

// Scores of rank one cannot do better than scores of any rank; with keys as wide as tokens factors
// reach what U does.
TEST(LayerOptimum, FactorsAreFamiliesOfLowRank) {
  DenoisingTask task;
  task.means.fixed = Matrix{{1.5, 0.0}, {-0.75, 1.3}, {-0.75, -1.3}};
  task.gamma = task.xi = 0.6;
  OptimumProblem problem{.task = denoising_task(task),
                         .family = LayerFamily::full,
                         .lengths = {},
                         .restarts = 1,
                         .risk = {}};
  const double any = layer_optimum(problem, Length::infinity()).risk;
  problem.factors = {.space = ParameterSpace::KQV, .key_dim = 2};
  EXPECT_NEAR(layer_optimum(problem, Length::infinity()).risk, any, 1e-5);
  problem.factors.key_dim = 1;
  const LayerOptimum one = layer_optimum(problem, Length::infinity());
  const Matrix& U = one.layer.heads[0].U;
  EXPECT_GT(one.risk, 1.1 * any);
  EXPECT_NEAR(U(0, 0) * U(1, 1), U(0, 1) * U(1, 0), 1e-9);
  problem.family = LayerFamily::scalars;
  EXPECT_THROW((void)layer_optimum(problem, Length::infinity()), ArgumentError);
}

TEST(LayerOptimum, AStartOfOnesOwnIsTheFirst) {
  OptimumProblem problem{.task = denoising_task(testing::two_points(0.6, 0.9)),
                         .lengths = {},
                         .restarts = 1,
                         .risk = {}};
  problem.start = Layer{Matrix{{0.1}}, {{ModelKind::softmax, Matrix{{-0.5}}, Matrix{{-0.4}}}}};
  EXPECT_GT(layer_optimum(problem, Length::infinity()).mirror_risk, 0);
  problem.start = Layer{Matrix::Zero(2, 2), {}};
  EXPECT_THROW((void)layer_optimum(problem, Length::infinity()), DimensionError);
}

TEST(LayerModel, BalancedStartsAreBalanced) {
  for (const ContextTask& task :
       {testing::two_classes(), denoising_task(testing::two_points(1, 1))}) {
    const Layer one = balanced_layer(task, {ModelKind::softmax}, 0.3, Matrix(), Stream(1));
    const Layer two =
        balanced_layer(task, {ModelKind::softmax, ModelKind::linear}, 0.3, Matrix(), Stream(1));
    for (const Layer& layer : {one, two}) {
      EXPECT_EQ(layer.W.norm(), 0);
      for (const LayerHead& head : layer.heads) {
        EXPECT_TRUE(close(head.U.norm(), 0.3, 1e-14));
        EXPECT_TRUE(close(head.V.norm(), 0.3, 1e-14));
      }
    }
  }
}

TEST(LayerOptimum, MistakesAreNamed) {
  OptimumProblem problem{.task = denoising_task(testing::two_points(0.6, 0.9)),
                         .lengths = {},
                         .restarts = 0,
                         .risk = {}};
  EXPECT_THROW((void)layer_optimum(problem, 10), ArgumentError);
}

}  // namespace
}  // namespace esscher
