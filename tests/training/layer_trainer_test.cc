#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/risk/layer_batch.h"
#include "esscher/risk/layer_risk.h"
#include "esscher/task/classification.h"
#include "esscher/training/chain.h"
#include "tests/gradient_check.h"
#include "tests/task/tasks.h"
#include "tests/testing.h"

namespace esscher {
namespace {

ContextTask denoising() { return denoising_task(testing::two_points(0.6, 0.9)); }

ContextTask classes() {
  ClassificationTask task;
  task.means.law = MeansLaw::gaussian;
  task.cov = Matrix::Identity(1, 1);
  return classification_task(task);
}

Layer start_of(const ContextTask& task, const std::vector<ModelKind>& kinds) {
  return testing::small_layer(task, kinds, 0.3, 0.4, 1);
}

TrainConfig config_of(const ContextTask& task, const std::vector<ModelKind>& kinds) {
  TrainConfig config;
  config.layer = LayerModel{.task = task, .start = start_of(task, kinds)};
  config.length = 8;
  config.batch = 32;
  config.half_loss = true;
  config.curve_block = 10;
  config.seed = 3;
  config.optimizer.kind = OptimizerKind::adam;
  config.optimizer.learning_rate = 0.02;
  config.risk.log2_nodes = 7;
  return config;
}

const std::vector<std::vector<ModelKind>> kHeads{{ModelKind::softmax},
                                                 {ModelKind::softmax, ModelKind::linear}};

// Loss and gradient over many steps, against the exact risk and its gradient.
TEST(LayerBatch, IsUnbiased) {
  ContextTask logistic = classes();
  logistic.loss = TaskLoss::logistic;
  for (const ContextTask& task : {denoising(), classes(), logistic}) {
    for (const Length L : {Length(6), Length::infinity()}) {
      // Its risk at a finite length is drawn, on other prompts.
      if (task.loss == TaskLoss::logistic && !L.is_infinite()) continue;
      const LayerModel model{.task = task, .start = start_of(task, {ModelKind::softmax})};
      const LayerMap map = model.map();
      const LayerBatch batch(task, L, 100, true);
      std::vector<Moments> found(static_cast<std::size_t>(1 + map.size()));
      for (std::uint64_t i = 0; i < 60; ++i) {
        const LayerLoss one = batch(model.start, Stream(7).split(i));
        const Vector slope = map.pull_back(model.theta0(), one.gradient);
        found[0].add(one.loss);
        for (Index j = 0; j < slope.size(); ++j) {
          found[static_cast<std::size_t>(j + 1)].add(slope[j]);
        }
      }
      Vector exact;
      const double risk = layer_objective(task, map, L, {})(model.theta0(), exact);
      const auto where = std::string(name(task.type)) + " L = " + L.text();
      EXPECT_TRUE(testing::agrees(found[0].estimate(Engine::direct), risk)) << where;
      for (Index j = 0; j < exact.size(); ++j) {
        EXPECT_TRUE(testing::agrees(found[static_cast<std::size_t>(j + 1)].estimate(Engine::direct),
                                    exact[j]))
            << where << " phi " << j;
      }
    }
  }
}

// Prompts of a single index are in double; lanes have their slow twin in tests/risk/layer_batch_test.cc.
TEST(LayerTrainer, GradientsAreThoseOfTheBatch) {
  for (const ContextTask& task : {testing::index_on_the_line(), denoising()}) {
    for (const auto& kinds : kHeads) {
      const TrainConfig config = config_of(task, kinds);
      const LayerMap map = config.layer->map();
      const LayerBatch batch(task, config.length, config.batch, true);
      const Stream stream = Stream(config.seed).split(1).split(5);
      Vector gradient;
      const Trainer trainer(config);
      const double loss = trainer.gradient(5, gradient);
      EXPECT_EQ(loss, batch(trainer.layer(), stream).loss);
      EXPECT_EQ(gradient, map.pull_back(trainer.theta(), batch(trainer.layer(), stream).gradient));
      if (batch.has_lanes()) continue;
      EXPECT_TRUE(testing::gradient_check(
          [&](const Vector& phi) { return batch(map.layer(phi), stream).loss; }, trainer.theta(),
          gradient, {.step = 1e-2, .relative = 1e-6, .rounding = 1e-11}))
          << name(task.type);
    }
  }
}

TEST(LayerTrainer, TheLogisticLossHasNoWholeSquare) {
  ClassificationTask task;
  task.means.law = MeansLaw::gaussian;
  task.cov = Matrix::Identity(1, 1);
  task.loss = TaskLoss::logistic;
  TrainConfig config = config_of(classification_task(task), {ModelKind::softmax});
  EXPECT_NO_THROW(config.check());
  config.half_loss = false;
  EXPECT_NE(testing::message_of<ArgumentError>([&] { config.check(); }).find("loss is mse"),
            std::string::npos);
  config.half_loss = true;
  config.gradient = Engine::exact;
  EXPECT_THROW(config.check(), CapabilityError);
  config.length = Length::infinity();
  EXPECT_NO_THROW(config.check());
}

TEST(LayerTrainer, GoesOnFromAnyStepBitForBit) {
  for (const auto& kinds : kHeads) {
    const TrainPlan plan{.config = config_of(classes(), kinds), .steps = 40, .checkpoints = 4};
    Chain whole(plan), first(plan), second(plan);
    std::vector<TrainRow> rows;
    for (std::size_t k = 0; k < 4; ++k) {
      for (const TrainRow& row : whole.advance(k)) rows.push_back(row);
    }
    (void)first.advance(0);
    (void)first.advance(1);
    second.restore(first.state());
    (void)second.advance(2);
    EXPECT_EQ(rows.back().layer().parameters(), second.advance(3).back().layer().parameters());
    const TrainResult result = assemble_training(whole.trainer(), rows, plan.config.risk);
    EXPECT_EQ(result.layer->parameters(), rows.back().layer().parameters());
    EXPECT_EQ(result.task, "classification");
    EXPECT_EQ(result.losses.size(), 4u);
  }
}

TEST(LayerTrainer, HasTheSameBitsForAnyNumberOfThreads) {
  std::vector<Vector> ends;
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    Trainer trainer(config_of(classes(), kHeads[1]));
    trainer.run(20);
    ends.push_back(trainer.theta());
  }
  set_thread_count(0);
  EXPECT_EQ(ends[0], ends[1]);
}

// The loss is twice the risk unless halves are asked for, and small steps go down.
TEST(LayerTrainer, TheExactGradientDescendsTheRisk) {
  TrainConfig config = config_of(denoising(), {ModelKind::softmax});
  config.gradient = Engine::exact;
  config.half_loss = false;
  config.optimizer = {.learning_rate = 0.01};
  Trainer trainer(config);
  const SmoothFunction risk =
      layer_objective(config.layer->task, config.layer->map(), config.length, config.risk);
  double before = HUGE_VAL;
  for (int i = 0; i < 4; ++i) {
    Vector slope, found;
    const double now = risk(trainer.theta(), slope);
    EXPECT_LT(now, before);
    EXPECT_EQ(trainer.gradient(0, found), 2 * now);
    EXPECT_EQ(found, 2 * slope);
    before = now;
    trainer.run(1);
  }
}

// A layer whose scores overflow has no loss; the parameters before it are kept.
TEST(LayerTrainer, DivergesWithFiniteParameters) {
  TrainConfig config = config_of(denoising(), {ModelKind::softmax});
  config.optimizer = {.learning_rate = 1e200};
  Trainer trainer(config);
  EXPECT_LT(trainer.run(10), 10);
  EXPECT_EQ(trainer.status(), TrainStatus::diverged);
  EXPECT_TRUE(trainer.theta().allFinite());
}

TEST(LayerTrainer, RefusesWhatItCannotDo) {
  TrainConfig config = config_of(denoising(), {ModelKind::softmax, ModelKind::linear});
  config.gradient = Engine::exact;
  EXPECT_THROW(Trainer{config}, CapabilityError);
  config.length = Length::infinity();
  EXPECT_NO_THROW(Trainer{config});
  config.gradient = Engine::sampled;
  EXPECT_THROW(Trainer{config}, CapabilityError);
  config.gradient = Engine::direct;
  config.batch = 0;
  EXPECT_THROW(Trainer{config}, ArgumentError);
  EXPECT_THROW((void)Trainer(TrainConfig::authors(ModelKind::softmax, 10)).layer(), ArgumentError);
}

}  // namespace
}  // namespace esscher
