#include "esscher/training/chain.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"

namespace esscher {
namespace {

TrainPlan small_plan() {
  TrainPlan plan;
  plan.config.task = LinearRegressionTask::isotropic(2);
  plan.config.start = {.kind = StartKind::balanced, .alpha = 0.4};
  plan.config.length = 10;
  plan.config.batch = 8;
  plan.config.curve_block = 3;
  plan.config.heads = 2;
  plan.steps = 10;
  plan.checkpoints = 3;
  return plan;
}

std::vector<TrainRow> whole(Chain& chain) {
  std::vector<TrainRow> rows;
  for (std::size_t k = 0; k < chain.keys().size(); ++k) {
    for (TrainRow& row : chain.advance(k)) rows.push_back(std::move(row));
  }
  return rows;
}

RecordTable records(const std::vector<TrainRow>& rows) {
  return table_of(std::span<const TrainRow>(rows));
}

TEST(Chain, CheckpointsPartitionTheSteps) {
  Chain chain(small_plan());
  EXPECT_EQ(chain.keys(), (std::vector<std::string>{"step 3", "step 6", "step 10"}));
  const TrainResult result = assemble_training(chain.trainer(), whole(chain), {});
  EXPECT_TRUE(chain.is_over());
  EXPECT_EQ(result.losses.size(), 3U);
  ASSERT_EQ(result.checkpoints.size(), 3U);
  EXPECT_EQ(result.checkpoints[2].step, 10);
  const std::vector<Readout> heads = result.checkpoints[2].heads();
  ASSERT_EQ(heads.size(), 2U);
  EXPECT_EQ(heads[1].U, chain.trainer().heads()[1].U);
  EXPECT_EQ(heads[1].r, chain.trainer().heads()[1].r);
}

TEST(Chain, GoesOnFromAStateInsideACheckpoint) {
  Chain one(small_plan());
  const std::vector<TrainRow> want = whole(one);
  Chain other(small_plan());
  std::vector<TrainRow> rows = other.advance(0);
  Trainer ahead(small_plan().config);
  ahead.run(5);
  other.restore(ahead.state());
  for (std::size_t k : {1, 2}) {
    for (TrainRow& row : other.advance(k)) rows.push_back(std::move(row));
  }
  EXPECT_EQ(records(rows), records(want));
}

TEST(Chain, ADivergedRunHasNoFinalRisk) {
  TrainPlan plan = small_plan();
  plan.config.optimizer.learning_rate = 1e6;
  Chain chain(plan);
  const TrainResult result = assemble_training(chain.trainer(), whole(chain), {});
  EXPECT_EQ(result.status, TrainStatus::diverged);
  EXPECT_TRUE(std::isnan(result.final_risk.risk));
}

TEST(Chain, RefusesEmptyPlans) {
  TrainPlan plan = small_plan();
  plan.checkpoints = 0;
  EXPECT_THROW(Chain{plan}, ArgumentError);
}

// Training may end where softmax is frozen, or where scores overflow: the run is finished all the
// same, and its heads are there.
TEST(Chain, SharpScoresAtTheEndAreNoFailure) {
  for (const double size : {300.0, 1e90}) {
    TrainPlan plan = small_plan();
    plan.config.heads = 1;
    plan.config.task = LinearRegressionTask::isotropic(2);
    plan.config.space = {ParameterSpace::KQV, 3, 3};
    plan.config.start = {.kind = StartKind::identity, .alpha = 1};
    plan.config.optimizer.learning_rate = 1e-12;
    plan.config.risk.log2_nodes = 6;
    plan.steps = 1;
    plan.checkpoints = 1;
    Chain chain(plan);
    const std::vector<TrainRow> rows = whole(chain);
    TrainState state = chain.trainer().state();
    state.theta.head(18) *= size;  // K and Q: scores grow by size^2
    Trainer trainer(plan.config);
    trainer.restore(state);
    const TrainResult result = assemble_training(trainer, rows, plan.config.risk);
    EXPECT_EQ(result.heads.size(), 1U);
    EXPECT_EQ(std::isfinite(result.final_risk.risk), size < 1e10) << size;
  }
}

}  // namespace
}  // namespace esscher
