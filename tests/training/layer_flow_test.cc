#include "esscher/training/layer_flow.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/task/pool.h"
#include "tests/gradient_check.h"
#include "tests/task/tasks.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::two_points;

ContextTask pool() {
  PoolTask task;
  task.pool = Matrix{{1.0}, {-0.5}};
  task.cov = Matrix::Identity(1, 1);
  task.noise_variance = 0.1;
  return pool_task(task);
}

ContextTask denoising(double gamma, double xi) { return denoising_task(two_points(gamma, xi)); }

ContextTask classes() { return testing::two_classes(); }

Layer small_layer(const ContextTask& task, const std::vector<ModelKind>& kinds) {
  return testing::small_layer(task, kinds, 0.4, 0.3, 0.3);
}

LayerFlowProblem problem_of(const ContextTask& task, Length L,
                            const std::vector<ModelKind>& kinds = {ModelKind::softmax}) {
  LayerFlowProblem out{.model = {.task = task, .start = small_layer(task, kinds)}, .length = L};
  out.flow.rtol = 1e-8;
  out.risk.log2_nodes = 5;
  out.risk.draws = 50;
  return out;
}

// The flow up to t is a flow up to t/3 and one from there, and it loses the energy it should.
void expect_flow(LayerFlowProblem whole, double t) {
  whole.flow.rtol = 1e-9;
  whole.flow.t_end = t;
  const FlowResult flow = layer_flow(whole);
  LayerFlowProblem part = whole;
  part.flow.t_end = t / 3;
  part.model.start = part.model.map().layer(layer_flow(part).end().theta);
  part.flow.t_end = 2 * t / 3;
  const Vector parts = layer_flow(part).end().theta;
  const std::string where = std::string(name(whole.model.task.type)) + " " +
                            whole.model.start.kinds_text() + " L = " + whole.length.text();
  EXPECT_TRUE(close(Matrix(parts), Matrix(flow.end().theta), 1e-6)) << where;
  EXPECT_LT(flow.energy_defect, 1e-6) << where;
  EXPECT_LT(flow.largest_increase, 1e-10) << where;
  EXPECT_LT(flow.end().risk, flow.path.front().risk - 1e-4) << where;
}

TEST(LayerFlow, IsASemigroupThatLosesEnergy) {
  for (const ContextTask& task :
       {denoising(0.6, 0.9), classes(), testing::index_on_the_line(), pool()}) {
    expect_flow(problem_of(task, 4, {ModelKind::linear}), 0.6);
    expect_flow(problem_of(task, Length::infinity()), 0.6);
  }
}

// One softmax head on the exact risk of finite prompts. Means that are drawn per prompt have few
// nodes, and scalars few directions, which keeps the flow short.
TEST(LayerFlow, OfSoftmaxOnAFinitePromptIsASemigroupToo) {
  DenoisingTask task;
  task.means.law = MeansLaw::gaussian;
  task.gamma = task.xi = 0.7;
  LayerFlowProblem problem = problem_of(denoising_task(task), 4);
  problem.model.family = LayerFamily::scalars;
  problem.risk.log2_nodes = 3;
  expect_flow(problem, 0.3);
}

// Two heads, one of them softmax, have no formula: they flow on fixed prompts.
TEST(LayerFlow, TheFieldIsTheGradientOfItsRisk) {
  for (const ContextTask& task :
       {denoising(0.6, 0.9), classes(), testing::index_on_the_line(), pool()}) {
    for (const auto& [L, kinds] : {std::pair{Length::infinity(), std::vector{ModelKind::softmax}},
                                   {Length(5), {ModelKind::softmax, ModelKind::linear}}}) {
      const LayerFlowProblem problem = problem_of(task, L, kinds);
      const SmoothFunction risk = layer_field(problem).risk;
      const Vector phi = problem.model.theta0();
      Vector slope, unused;
      (void)risk(phi, slope);
      EXPECT_TRUE(testing::gradient_check([&](const Vector& x) { return risk(x, unused); }, phi,
                                          slope,
                                          {.step = 1e-2, .relative = 1e-6, .rounding = 1e-11}))
          << name(task.type) << " " << problem.model.start.kinds_text();
    }
  }
}

// For means of equal norm the posterior mean is a softmax layer, and the flow
// of scalars in an infinite prompt finds it.
TEST(LayerFlow, AnInfinitePromptFlowsToThePosteriorMean) {
  LayerFlowProblem problem = problem_of(denoising(0.6, 0.9), Length::infinity());
  problem.model.family = LayerFamily::scalars;
  problem.flow.stationary = 1e-7;
  const FlowRecord record = assemble_flow(compute_here(flow_cells(problem)));
  const FlowRow& end = record.summary;
  const double S = 0.36 + 0.81;
  EXPECT_EQ(end.status, FlowStatus::stationary);
  EXPECT_TRUE(close(end.U(0, 0), 1 / S, 1e-4));
  EXPECT_TRUE(close((*end.V)(0, 0), 0.81 / S, 1e-4));
  EXPECT_TRUE(close((*end.W)(0, 0), (0.36 - 0.81) / S, 1e-4));
  EXPECT_TRUE(close(end.risk, *end.bayes, 1e-8));
  EXPECT_EQ(end.task, "denoising");
  EXPECT_EQ(
      end.layer(end).parameters(),
      problem.model.start.with(Vector{{(*end.W)(0, 0), end.U(0, 0), (*end.V)(0, 0)}}).parameters());
  EXPECT_EQ(record.path.front().risk, layer_flow(problem).path.front().risk);
}

TEST(LayerFlow, LinearHeadsKeepTheirBalance) {
  const std::vector<ModelKind> kinds(2, ModelKind::linear);
  for (const LayerFamily family : {LayerFamily::scalars, LayerFamily::full}) {
    LayerFlowProblem problem = problem_of(denoising(0.6, 0.9), 20, kinds);
    problem.model.family = family;
    problem.flow.t_end = 2;
    const FlowResult flow = layer_flow(problem);
    const LayerMap map = problem.model.map();
    EXPECT_EQ(map.conserved(flow.end().theta).size(), 2);
    EXPECT_GT((flow.end().theta - problem.model.theta0()).norm(), 0.05);
    EXPECT_LT(flow.conserved_drift, 1e-7) << name(family);
  }
  // A softmax head keeps nothing of the kind.
  const LayerFlowProblem softmax = problem_of(denoising(0.6, 0.9), 20);
  EXPECT_EQ(softmax.model.map().conserved(softmax.model.theta0()).size(), 0);
}

TEST(LayerModel, ALayerOutsideItsFamilyIsRefused) {
  LayerFlowProblem problem = problem_of(classes(), 20);
  EXPECT_NO_THROW((void)problem.model.theta0());
  problem.model.family = LayerFamily::scalars;
  problem.model.start.heads[0].V(0, 0) = 0.2;
  EXPECT_NE(
      testing::message_of<ArgumentError>([&] { (void)problem.model.theta0(); }).find("\"scalars\""),
      std::string::npos);
}

TEST(LayerModel, AGradientWithoutAFormulaIsRefused) {
  LayerFlowProblem problem = problem_of(classes(), 20, {ModelKind::softmax, ModelKind::linear});
  EXPECT_NO_THROW((void)layer_field(problem));
  problem.risk.engine = Engine::exact;
  EXPECT_THROW((void)layer_field(problem), CapabilityError);
}

TEST(Layer, IsReadBackFromItsStack) {
  const Layer mixed = small_layer(denoising(1, 1), {ModelKind::softmax, ModelKind::linear});
  EXPECT_EQ(mixed.kinds_text(), "softmax+linear");
  const Layer again =
      Layer::of_stacked(mixed.kinds_text(), mixed.stacked_U(), mixed.stacked_V(), mixed.W);
  EXPECT_EQ(again.parameters(), mixed.parameters());
  EXPECT_EQ(again.heads[1].kind, ModelKind::linear);
  EXPECT_THROW(Layer::of_stacked("softmax", mixed.stacked_U(), mixed.W, mixed.W), DimensionError);
}

}  // namespace
}  // namespace esscher
