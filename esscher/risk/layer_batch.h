// The loss of a batch of fresh prompts of a task beyond regression, and its gradient in the layer:
//
//   loss = mean over the batch of |out - t|^2, or one half of it
//
// A law, a query, a target and a prompt of L tokens are drawn for each; at L = infinity the layer
// reads the law itself.
#pragma once

#include "esscher/base/length.h"
#include "esscher/random/stream.h"
#include "esscher/risk/layer.h"
#include "esscher/task/context.h"

namespace esscher {

struct LayerLoss {
  double loss = 0;
  Layer gradient;
};

class LayerBatch {
 public:
  // `half` for half the squared error. Throws ArgumentError unless prompts >= 1 and length >= 1,
  // CapabilityError if a prompt does not fit into memory.
  LayerBatch(ContextTask task, Length length, Index prompts, bool half);

  // A pure function of (layer, stream), with the same bits for any number of threads.
  [[nodiscard]] LayerLoss operator()(const Layer& layer, const Stream& stream) const;

 private:
  // Half the squared error of prompt i; its gradient is added to *gradient.
  double add(const Layer& layer, const Stream& own, Layer* gradient) const;

  ContextTask task_;
  Length length_;
  Index prompts_;
  double factor_;  // of the mean of halves
};

}  // namespace esscher
