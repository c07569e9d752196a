// [train] for stochastic training, beside [task] and [model] of config/icl.h.
//
//   length = 100 or "inf"; optimizer = "sgd" | "adam" | "adamw"; learning_rate
//   = 1e-3; momentum = 0; beta1 = 0.9; beta2 = 0.999; epsilon = 1e-8;
//   weight_decay = 0; batch = 128; steps = 10000; gradient = "sampled" |
//   "direct" | "exact"; loss = "half" | "mse"; curve_block = 100; checkpoints =
//   50
//
// loss = "half" trains on the risk of this project (half a squared error),
// "mse" on the mean squared error as PyTorch users do: the same learning rate
// then moves twice as far.
#pragma once

#include "esscher/config/table.h"
#include "esscher/training/trainer.h"

namespace esscher {

struct TrainRun {
  TrainConfig config;
  std::int64_t steps = 10000;
  std::int64_t checkpoints = 50;  // cells of the run; resuming starts at the last one
};

TrainRun read_train(const Table& root, std::uint64_t seed);

}  // namespace esscher
