// Prompts that are drawn side by side, against the nodes of the task and its exact moments.
#include "esscher/task/side_by_side.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>
#include <string>
#include <vector>

#include "esscher/estimate/moments.h"
#include "esscher/task/classification.h"
#include "esscher/task/denoising.h"
#include "tests/testing.h"

namespace esscher {
namespace {

constexpr Index kPrompts = 20000;

DenoisingTask denoising(MeansLaw law) {
  DenoisingTask task;
  task.means = {.law = law, .fixed = {}, .count = 3, .dim = 2, .scale = 1.7};
  if (law == MeansLaw::fixed) task.means.fixed = Matrix{{1, 0}, {-1, 0.5}, {0.2, -2}};
  task.weights = Vector{{0.2, 0.5, 0.3}};
  task.gamma = 0.6;
  task.xi = 0.9;
  return task;
}

ClassificationTask classes(MeansLaw law) {
  ClassificationTask task;
  task.means = {.law = law, .fixed = {}, .count = 2, .dim = 3, .scale = 0.8};
  if (law == MeansLaw::fixed) task.means.fixed = Matrix{{1, 0, 0.3}, {-0.6, 0.5, 0}};
  task.weights = Vector{{0.35, 0.65}};
  task.cov = Matrix{{1.0, 0.4, 0.0}, {0.4, 0.8, -0.2}, {0.0, -0.2, 0.5}};
  return task;
}

std::vector<ContextTask> tasks() {
  std::vector<ContextTask> out;
  for (const MeansLaw law : {MeansLaw::fixed, MeansLaw::gaussian, MeansLaw::sphere}) {
    out.push_back(denoising_task(denoising(law)));
    out.push_back(classification_task(classes(law)));
  }
  return out;
}

TEST(SideBySide, APromptDoesNotDependOnItsNeighbours) {
  for (const ContextTask& task : tasks()) {
    const auto draw = task.side_by_side->draw;
    const SideBySide::Draws many = draw(Stream(1), 0, 40), some = draw(Stream(1), 21, 5);
    EXPECT_EQ(many.means.middleCols(21, 5), some.means);
    EXPECT_EQ(many.queries.middleCols(21, 5), some.queries);
    EXPECT_EQ(many.targets.middleCols(21, 5), some.targets);
  }
}

TEST(SideBySide, LawsHaveTheShapeOfThoseOfNodes) {
  for (const ContextTask& task : tasks()) {
    const SideBySide& sides = *task.side_by_side;
    const SideBySide::Draws draws = sides.draw(Stream(2), 0, 3);
    const auto node = draw_node(task, Stream(3)).tokens->shared();
    const SharedMixture law = sides.law(draws, 2);
    EXPECT_EQ(law.weights, node->weights);
    EXPECT_LT((law.cov - node->cov).norm(), 1e-14);
    EXPECT_EQ(law.means.rows(), node->means.rows());
    for (Index k = 0; k < law.count(); ++k) {
      EXPECT_EQ(law.means.row(k), draws.means.col(2).segment(k * law.dim(), law.dim()).transpose());
    }
    if (task.fixed_law) {
      EXPECT_EQ(law.means, node->means);
    }
  }
}

// Moments of query and target, which the tasks know exactly.
TEST(SideBySide, QueriesAndTargetsHaveTheirMoments) {
  for (const ContextTask& task : tasks()) {
    const SideBySide::Draws draws = task.side_by_side->draw(Stream(4), 0, kPrompts);
    const QueryMoments exact = task.moments(Stream(0));
    const auto where = std::string(name(task.type));
    const auto check = [&](const auto& value, double expected) {
      Moments sums;
      for (Index j = 0; j < kPrompts; ++j) sums.add(value(j));
      const Estimate found = sums.estimate(Engine::direct);
      if (found.std_error == 0) {
        EXPECT_NEAR(found.value, expected, 1e-12) << where;
      } else {
        EXPECT_TRUE(testing::agrees(found, expected)) << where;
      }
    };
    for (Index a = 0; a < task.token_dim; ++a) {
      check([&](Index j) { return draws.queries(a, j); }, exact.z[a]);
      for (Index b = 0; b <= a; ++b) {
        check([&](Index j) { return draws.queries(a, j) * draws.queries(b, j); }, exact.zz(a, b));
      }
      for (Index i = 0; i < task.out_dim; ++i) {
        check([&](Index j) { return draws.targets(i, j) * draws.queries(a, j); }, exact.tz(i, a));
      }
    }
    for (Index i = 0; i < task.out_dim; ++i) {
      check([&](Index j) { return draws.targets(i, j); }, exact.t[i]);
    }
    check([&](Index j) { return draws.targets.col(j).squaredNorm(); }, exact.tt);
  }
}

// The target belongs to the law and the query: what is left of it beside its mean given both is
// uncorrelated with the query, and has the variance that the posterior says.
TEST(SideBySide, TargetsHaveTheirPosteriorMean) {
  const DenoisingTask task = denoising(MeansLaw::sphere);
  const SideBySide sides = *denoising_task(task).side_by_side;
  const SideBySide::Draws draws = sides.draw(Stream(5), 0, kPrompts);
  Moments rest, times_query, variance;
  for (Index j = 0; j < kPrompts; ++j) {
    const Vector z = draws.queries.col(j);
    const DenoisingPosterior posterior = denoising_posterior(task, sides.law(draws, j).means, z);
    const Vector miss = draws.targets.col(j) - posterior.mean;
    rest.add(miss[0]);
    times_query.add(miss.dot(z));
    variance.add(miss.squaredNorm() - posterior.variance);
  }
  for (const Moments& sums : {rest, times_query, variance}) {
    EXPECT_TRUE(testing::agrees(sums.estimate(Engine::direct), 0));
  }
}

TEST(SideBySide, LabelsHaveTheirPosteriorMean) {
  const ClassificationTask task = classes(MeansLaw::gaussian);
  const SideBySide sides = *classification_task(task).side_by_side;
  const SideBySide::Draws draws = sides.draw(Stream(6), 0, kPrompts);
  const Matrix inverse = task.cov.inverse();
  Moments rest, times_query;
  for (Index j = 0; j < kPrompts; ++j) {
    const SharedMixture law = sides.law(draws, j);
    const Vector x = draws.queries.col(j).head(3);
    const Vector gap = (law.means.row(0) - law.means.row(1)).head(3).transpose();
    const Vector middle = 0.5 * (law.means.row(0) + law.means.row(1)).head(3).transpose();
    const double odds = std::log(0.35 / 0.65) + (x - middle).dot(inverse * gap);
    const double miss = draws.targets(0, j) - std::tanh(odds / 2);
    rest.add(miss);
    times_query.add(miss * x.dot(gap));
  }
  EXPECT_TRUE(testing::agrees(rest.estimate(Engine::direct), 0));
  EXPECT_TRUE(testing::agrees(times_query.estimate(Engine::direct), 0));
}

}  // namespace
}  // namespace esscher
