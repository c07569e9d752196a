// The loss of a batch of fresh prompts of a task beyond regression, and its gradient in the layer:
//
//   loss = mean over the batch of |out - t|^2, or one half of it, or the mean of the task's loss
//
// A law, a query, a target and a prompt of L tokens are drawn for each. Prompts of mixtures are side by
// side in SIMD lanes: float32 draws, sums in double across blocks of tokens, relative error of a
// gradient 1e-6. Other laws are sampled token by token. At L = infinity the layer reads the law itself.
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
  // `half` for half the squared error; another loss of the task is taken as it is. Throws ArgumentError unless prompts >= 1 and length >= 1,
  // CapabilityError if a prompt has to fit into memory and does not.
  LayerBatch(ContextTask task, Length length, Index prompts, bool half);

  // A pure function of (layer, stream), with the same bits for any number of threads. Laws, queries
  // and targets do not depend on the length. Tasks that draw side by side (task/side_by_side.h) read
  // them from stream.split(0). Of others the law and query of prompt i are draw_node of
  // stream.split(0).split(i).split(0), and its target is drawn from .split(1). Lanes read their
  // tokens from stream.split(1), others from stream.split(0).split(i).split(2).
  [[nodiscard]] LayerLoss operator()(const Layer& layer, const Stream& stream) const;

  [[nodiscard]] bool has_lanes() const { return lanes_; }

 private:
  // Losses of prompts first .. first + count - 1, summed; the gradient is added.
  double add_nodes(const Layer& layer, const Stream& stream, Index first, Index count,
                   Layer& gradient) const;
  double add_draws(const Layer& layer, const Stream& stream, Index first, Index count,
                   Layer& gradient) const;

  ContextTask task_;
  Length length_;
  Index prompts_;
  double factor_;  // of the mean of halves
  bool lanes_;
};

}  // namespace esscher
