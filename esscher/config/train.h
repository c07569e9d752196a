// [train] for stochastic training, beside [task] and [model] of config/icl.h.
//
//   length        = 100          # or "inf"
//   steps         = 10000
//   batch         = 128
//   gradient      = "sampled"    # or "direct", "exact"
//   loss          = "half"       # or "mse"
//   optimizer     = "sgd"        # or "adam", "adamw"
//   learning_rate = 1e-3
//   momentum      = 0            # sgd
//   beta1         = 0.9          # adam, adamw
//   beta2         = 0.999
//   epsilon       = 1e-8
//   weight_decay  = 0
//   curve_block   = 100          # steps that one point of the loss curve averages
//   checkpoints   = 50
//
// loss = "half" trains on the risk of this project, which is half a squared error. loss = "mse"
// trains on the mean squared error, as PyTorch users do: a step of the same learning rate is then
// twice as long.
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
