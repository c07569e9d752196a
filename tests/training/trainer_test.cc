#include "esscher/training/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/json/training.h"
#include "esscher/risk/closed_form.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agree;
using testing::agrees;
using testing::close;

std::string text_of(const Trainer& trainer) { return dump(state_json(trainer.state())); }

TrainConfig quick(ModelKind model, Length length) {
  TrainConfig config = TrainConfig::authors(model, length);
  config.batch = 24;
  config.optimizer.learning_rate = 0.02;
  config.curve_block = 7;
  config.seed = 99;
  return config;
}

TEST(Trainer, ResumeIsBitIdentical) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw}) {
    TrainConfig config = quick(ModelKind::softmax, 20);
    config.optimizer.kind = kind;
    config.optimizer.momentum = 0.8;
    config.optimizer.weight_decay = 0.01;
    Trainer whole(config);
    whole.run(50);
    Trainer first(config);
    first.run(23);
    const std::string text = dump(state_json(first.state()));  // through text, as a file would
    Trainer second(config);
    second.restore(state_of(parse_json("state", text)));
    second.run(27);
    EXPECT_EQ(text_of(whole), text_of(second));
    EXPECT_EQ(whole.theta(), second.theta());
    ASSERT_EQ(whole.curve().size(), 7U);
    EXPECT_EQ(whole.curve()[6].last, 49);
  }
}

TEST(Trainer, ThreadCountDoesNotMatter) {
  std::vector<std::string> states;
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    Trainer trainer(quick(ModelKind::softmax, 15));
    trainer.run(20);
    states.push_back(text_of(trainer));
  }
  set_thread_count(0);
  EXPECT_EQ(states[0], states[1]);
}

TEST(Trainer, InfiniteSoftmaxIsInfiniteLinearStepByStep) {
  for (const Index heads : {1, 2}) {
    TrainConfig config = quick(ModelKind::softmax, Length::infinity());
    config.heads = heads;
    Trainer softmax(config);
    config.model = ModelKind::linear;
    Trainer linear(config);
    for (int i = 0; i < 30; ++i) {
      softmax.run(1);
      linear.run(1);
      ASSERT_EQ(softmax.theta(), linear.theta());
      ASSERT_EQ(softmax.last_loss(), linear.last_loss());
    }
  }
}

TEST(Trainer, DivergenceIsReportedWithFiniteParameters) {
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    for (const double rate : {30.0, 1e6, 1e200}) {
      TrainConfig config = quick(kind, 10);
      config.start = {.kind = StartKind::torch};
      config.optimizer.learning_rate = rate;
      Trainer trainer(config);
      EXPECT_LT(trainer.run(400), 400) << rate;
      EXPECT_EQ(trainer.status(), TrainStatus::diverged);
      EXPECT_TRUE(trainer.theta().allFinite());
      EXPECT_EQ(trainer.run(5), 0);
      EXPECT_EQ(text_of(trainer).find("null"), std::string::npos);
    }
  }
}

TEST(Trainer, TrainingLowersTheRisk) {
  TrainConfig config;
  config.task = LinearRegressionTask::with_covariance(power_covariance(3, 0.5));
  config.start = {.kind = StartKind::balanced, .alpha = 0.5};
  config.length = 200;
  config.batch = 64;
  config.optimizer.kind = OptimizerKind::adam;
  config.optimizer.learning_rate = 0.01;
  Trainer trainer(config);
  const double before = limit_risk(config.task.regression(), trainer.heads()[0]);
  trainer.run(600);
  EXPECT_LT(limit_risk(config.task.regression(), trainer.heads()[0]), 0.2 * before);
  EXPECT_LT(trainer.curve().back().loss, 0.5 * trainer.curve().front().loss);
  EXPECT_GT(trainer.curve().back().std_error, 0);
}

TEST(Trainer, ATaskOfOnesOwnTrains) {
  TrainConfig config;
  config.task = regression_task(LinearRegressionTask::with_covariance(power_covariance(2, 0.5)));
  config.start = {.kind = StartKind::balanced, .alpha = 0.5};
  config.length = 50;
  config.batch = 32;
  config.optimizer.learning_rate = 0.05;
  config.curve_block = 50;
  Trainer trainer(config);  // gradient is automatic: direct here
  trainer.run(300);
  EXPECT_LT(trainer.curve().back().loss, 0.7 * trainer.curve().front().loss);
  config.gradient = Engine::sampled;
  EXPECT_THROW(Trainer{config}, CapabilityError);
}

// The sampled stochastic gradient averages to the exact one at the same parameters.
TEST(Trainer, ExactGradientIsTheMeanOfSampledOnes) {
  TrainConfig config = quick(ModelKind::linear, 12);
  Trainer sampled(config);
  config.gradient = Engine::exact;
  Trainer exact(config);
  ASSERT_EQ(sampled.theta(), exact.theta());
  Vector want;
  const double loss = exact.gradient(0, want);
  std::vector<Moments> moments(static_cast<std::size_t>(want.size()) + 1);
  Vector g(want.size());
  for (int t = 0; t < 400; ++t) {
    moments[0].add(sampled.gradient(t, g));
    for (Index i = 0; i < g.size(); ++i) moments[static_cast<std::size_t>(i) + 1].add(g(i));
  }
  EXPECT_TRUE(agrees(moments[0].estimate(Engine::sampled), loss));
  for (Index i = 0; i < want.size(); ++i) {
    Estimate mean = moments[static_cast<std::size_t>(i) + 1].estimate(Engine::sampled);
    mean.std_error += 1e-15;
    EXPECT_TRUE(agrees(mean, want(i))) << i;
  }
}

// Whole runs, not single gradients: the final risks of many seeds have one law.
TEST(Trainer, SampledTrainingEqualsDirectTrainingInLaw) {
  const auto final_risks = [](Engine engine, std::uint64_t first_seed) {
    Moments risks;
    for (std::uint64_t seed = first_seed; seed < first_seed + 80; ++seed) {
      TrainConfig config = quick(ModelKind::softmax, 8);
      config.start = {.kind = StartKind::balanced, .alpha = 0.4};
      config.optimizer.learning_rate = 0.05;
      config.batch = 8;
      config.gradient = engine;
      config.seed = seed;
      Trainer trainer(config);
      trainer.run(40);
      risks.add(limit_risk(config.task.regression(), trainer.heads()[0]));
    }
    return risks.estimate(Engine::sampled);
  };
  EXPECT_TRUE(agree(final_risks(Engine::sampled, 1000), final_risks(Engine::direct, 2000)));
}

// Defect 15: the sum of squares minus the square of the sum lost every digit here.
TEST(Trainer, StandardErrorOfNearlyConstantLossesKeepsItsDigits) {
  TrainConfig config;
  config.task = LinearRegressionTask::isotropic(2);
  config.start = {.kind = StartKind::balanced, .alpha = 0.3};
  config.length = Length::infinity();
  config.gradient = Engine::exact;
  config.optimizer.learning_rate = 1e-9;
  config.curve_block = 8;
  Trainer trainer(config);
  std::vector<double> losses;
  for (int t = 0; t < 8; ++t) {
    trainer.run(1);
    losses.push_back(trainer.last_loss());
  }
  // Losses of a tiny step fall along a line; their spread by differences from the first.
  double sum = 0, square = 0;
  for (const double x : losses) {
    sum += x - losses[0];
    square += (x - losses[0]) * (x - losses[0]);
  }
  const double want = std::sqrt((square - sum * sum / 8) / 7 / 8);
  ASSERT_GT(want, 0);
  EXPECT_LT(want, 1e-7 * losses[0]);
  EXPECT_TRUE(close(trainer.curve().at(0).std_error, want, 1e-6));
}

TEST(Trainer, FollowsTheExactGradientOfSoftmaxAtFiniteLength) {
  TrainConfig config;
  config.task = LinearRegressionTask::isotropic(2);
  config.start = {.kind = StartKind::balanced, .alpha = 0.5};
  config.length = 20;
  config.gradient = Engine::exact;
  config.risk.log2_nodes = 6;
  const Trainer trainer(config);
  const auto loss = [&](const Readout& at, Readout* gradient) {
    const double half = risk_function(config.task, config.model, 20, config.risk)(at, gradient);
    if (gradient != nullptr) *gradient *= 2;
    return 2 * half;
  };
  Readout slope;
  Vector got;
  EXPECT_EQ(trainer.gradient(0, got), loss(trainer.heads()[0], &slope));
  EXPECT_EQ(got, trainer.config().space.pull_back(trainer.theta(), slope));
}

TEST(Trainer, ChoosesItsGradientBeforeAnyWork) {
  TrainConfig config = quick(ModelKind::softmax, 10);
  EXPECT_EQ(choose_gradient(config).engine, Engine::sampled);
  EXPECT_FALSE(choose_gradient(config).reason.empty());
  LinearRegressionTask task = config.task.regression();
  task.features = Features::rademacher;
  config.task = task;
  EXPECT_EQ(choose_gradient(config).engine, Engine::direct);
  config.gradient = Engine::exact;
  EXPECT_THROW(choose_gradient(config), CapabilityError);
  config = quick(ModelKind::softmax, 10);
  config.gradient = Engine::exact;
  EXPECT_EQ(choose_gradient(config).engine, Engine::exact);
  config.heads = 2;
  EXPECT_THROW(choose_gradient(config), CapabilityError);
}

TEST(Trainer, RefusesBadConfigurationsAndStates) {
  TrainConfig config = quick(ModelKind::softmax, 10);
  config.heads = kMaxHeads + 1;
  EXPECT_THROW(Trainer{config}, ArgumentError);
  config = quick(ModelKind::softmax, 10);
  config.optimizer.learning_rate = -1;
  EXPECT_THROW(Trainer{config}, ArgumentError);
  config = quick(ModelKind::softmax, 10);
  Trainer trainer(config);
  TrainState state = trainer.state();
  state.theta.conservativeResize(state.theta.size() - 1);
  EXPECT_THROW(trainer.restore(state), FileError);
  state = trainer.state();
  state.seed = 1;
  EXPECT_THROW(trainer.restore(state), FileError);
  EXPECT_THROW(state_of(Json::object()), FileError);
}

// The state of a run of version 0.1: losses since the last point as [sum, sum of squares, count].
TEST(Trainer, ReadsTheStateOfTheFirstRelease) {
  Trainer trainer(quick(ModelKind::softmax, 10));
  trainer.run(3);
  Json document = state_json(trainer.state());
  document["block"] = {6.0, 14.0, 3};  // losses 1, 2, 3
  const TrainState state = state_of(document);
  EXPECT_EQ(state.block.count(), 3);
  EXPECT_EQ(state.block.mean(), 2);
  EXPECT_EQ(state.block.variance(), 1);
}

}  // namespace
}  // namespace esscher
