// [train] for stochastic training, beside [task], [model] and [flow] of config/icl.h.
//
//   length        = 100          # or "inf"
//   steps         = 10000
//   batch         = 128
//   gradient      = "auto"       # or "sampled", "direct", "exact": choose_gradient, trainer.h
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
#include "esscher/training/chain.h"

namespace esscher {

// Reads the whole of a training run. The nodes of gradient = "exact" are those of [flow]. Keys of
// other verbs are no error.
TrainPlan read_train(const Table& root, std::uint64_t seed);

// Verbs that do not train call this, so that the keys above are no error for them.
void allow_train_keys(const Table& root);

}  // namespace esscher
