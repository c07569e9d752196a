// The loss of a batch of fresh draws of any task and its gradient, as train_batch.h for regression:
// prompts are drawn token by token, an infinite one uses the measure's own tilted moments.
#pragma once

#include <span>

#include "esscher/risk/batch.h"
#include "esscher/risk/sample_risk.h"

namespace esscher {

class TaskBatch {
 public:
  TaskBatch(Task task, ModelKind kind, Length length, Index batch, bool half);

  // A pure function of (heads, stream): same bits for any thread count.
  [[nodiscard]] BatchLoss operator()(std::span<const Readout> heads, const Stream& stream) const;

 private:
  void add(std::span<const Readout> heads, const Stream& stream, BatchLoss& sums) const;

  Task task_;
  ModelKind kind_;
  Length length_;
  Index batch_;
  double factor_;  // loss = factor * sum of (prediction - target)^2
};

}  // namespace esscher
