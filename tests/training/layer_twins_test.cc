#include "esscher/training/layer_twins.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/task/denoising.h"
#include "tests/testing.h"

namespace esscher {
namespace {

// Means that are drawn per prompt have a net of few nodes, fixed ones a lattice.
LayerCompareProblem problem_of(MeansLaw law, ModelKind kind) {
  DenoisingTask task;
  task.means.law = law;
  task.means.fixed = Matrix{{1.5}, {-1.5}};
  task.gamma = 0.6;
  task.xi = 0.9;
  LayerCompareProblem out{
      .flow = {.model = {.task = denoising_task(task), .family = LayerFamily::scalars}},
      .lengths = {Length(10), Length(100), Length(1000)}};
  out.flow.model.start = {Matrix{{0.1}}, {{kind, Matrix{{0.4}}, Matrix{{0.3}}}}};
  out.flow.flow.stationary = 1e-6;
  out.flow.risk.log2_nodes = 7;
  out.points = 10;
  return out;
}

TEST(LayerTwins, ComeCloserToTheInfinitePromptWithTheLength) {
  for (const MeansLaw law : {MeansLaw::fixed, MeansLaw::gaussian}) {
    LayerCompareProblem problem = problem_of(law, ModelKind::linear);
    if (law == MeansLaw::gaussian) problem.eps = {1e-4};
    const CompareResult found = assemble_twins(compute_here(twin_cells(problem)));
    ASSERT_EQ(found.twins.size(), 4u);
    EXPECT_EQ(found.twins[0].model, "infinity");
    EXPECT_EQ(*found.twins[0].sup_distance, 0);
    EXPECT_EQ(*found.twins[0].sup_gradient_gap, 0);
    for (std::size_t i = 2; i < 4; ++i) {
      const TwinRow &shorter = found.twins[i - 1], &longer = found.twins[i];
      EXPECT_LT(*longer.sup_gradient_gap, 0.2 * *shorter.sup_gradient_gap);
      EXPECT_LT(*longer.sup_distance, 0.5 * *shorter.sup_distance);
      EXPECT_LT(*longer.limiting_risk, *shorter.limiting_risk + 1e-9);
      EXPECT_EQ(longer.task, "denoising");
      EXPECT_EQ(longer.model, "linear");
    }
    EXPECT_EQ(found.path.size(), 4 * 11u);
    ASSERT_EQ(found.lengths.size(), problem.eps.size());
    for (const TwinRow& length : found.lengths) {
      EXPECT_LE(*length.risk, *length.target + 1e-4);
      EXPECT_GT(*length.risk_before, *length.target + 1e-4);
    }
  }
}

// A softmax twin against the two flows themselves, on the nodes that they share.
TEST(LayerTwins, AreTheTwoFlowsSideBySide) {
  LayerCompareProblem problem = problem_of(MeansLaw::gaussian, ModelKind::softmax);
  problem.flow.flow.t_end = 0.2;
  problem.lengths = {Length(20)};
  problem.points = 2;
  const CompareResult found = assemble_twins(compute_here(twin_cells(problem)));
  const LayerModel& model = problem.flow.model;
  const auto end = [&](Length L) {
    return gradient_flow(twin_field(problem, L), model.theta0(), problem.flow.flow).end().theta;
  };
  const Vector a = end(Length::infinity()), b = end(20);
  EXPECT_TRUE(testing::close(*found.path.back().distance, (a - b).norm(), 1e-6));
  const TwinRow& row = found.twins[1];
  const Layer stopped = Layer::of_stacked("softmax", *row.U, *row.V, *row.W);
  EXPECT_TRUE(testing::close(Matrix(model.map().coordinates(stopped)), Matrix(b), 1e-6));
}

// On a lattice the gap is that of two gradients on it.
TEST(LayerTwins, HaveTheGapOfTheirGradients) {
  const LayerCompareProblem problem = problem_of(MeansLaw::fixed, ModelKind::softmax);
  const LayerModel& model = problem.flow.model;
  const Vector phi = model.theta0();
  Vector at_infinity, at_length;
  (void)twin_field(problem, Length::infinity()).risk(phi, at_infinity);
  (void)twin_field(problem, 20).risk(phi, at_length);
  const Estimate gap = GradientGap(model, 20, problem.flow.risk)(phi);
  EXPECT_TRUE(testing::close(gap.value, (at_length - at_infinity).norm(), 1e-12));
  EXPECT_EQ(gap.std_error, 0);
  EXPECT_GT(gap.value, 1e-3);
}

// Two kinds of heads are drawn: the same prompts' laws and queries at L and at infinity.
TEST(LayerTwins, ThatAreDrawnShareTheirDraws) {
  LayerCompareProblem problem = problem_of(MeansLaw::gaussian, ModelKind::softmax);
  Layer& start = problem.flow.model.start;
  start.heads.push_back({ModelKind::linear, Matrix{{0.1}}, Matrix{{0.1}}});
  problem.flow.risk.draws = 20;
  problem.flow.flow.t_end = 0.2;
  problem.points = 2;
  problem.lengths = {Length(20000)};
  const CompareResult found = assemble_twins(compute_here(twin_cells(problem)));
  EXPECT_EQ(found.twins[1].model, "softmax+linear");
  EXPECT_EQ(found.twins[1].engine, Engine::direct);
  // On draws of their own the two risks differ by 0.0025.
  EXPECT_LT(*found.twins[1].sup_risk_gap, 0.001);
  problem.points = 1;
  EXPECT_THROW((void)twin_cells(problem), ArgumentError);
}

}  // namespace
}  // namespace esscher
