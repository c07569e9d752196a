#include "esscher/risk/layer_batch.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/risk/detail/lanes.h"
#include "esscher/risk/detail/layer_lanes.h"
#include "esscher/risk/layer_error.h"
#include "esscher/risk/layer_risk.h"

namespace esscher {
namespace {

constexpr Index kBlock = kTrainLanes;  // prompts of one piece of work

}  // namespace

LayerBatch::LayerBatch(ContextTask task, Length length, Index prompts, bool half)
    : task_(std::move(task)), length_(length), prompts_(prompts), factor_(1) {
  if (!half && task_.loss == TaskLoss::squared) factor_ = 2;
  if (prompts < 1) throw_argument("train", "batch", std::to_string(prompts), "an integer >= 1");
  if (length == Length(0)) throw_argument("train", "length", "0", "an integer >= 1, or inf");
  lanes_ = !length.is_infinite() && draw_node(task_, Stream(0)).tokens->shared() != nullptr;
  if (!length.is_infinite() && !lanes_) check_prompt_memory(task_, length, 1);
}

double LayerBatch::add(const Layer& layer, const Stream& stream, Index first, Index count,
                       Layer& gradient) const {
  std::vector<LanePrompt> prompts;
  double loss = 0;
  for (Index i = first; i < first + count; ++i) {
    const Stream own = stream.split(0).split(static_cast<std::uint64_t>(i));
    ContextNode node = draw_node(task_, own.split(0));
    Vector target = task_.target(node, own.split(1));
    if (lanes_) {
      prompts.push_back({std::move(node), std::move(target)});
      continue;
    }
    const AnyMeasure& law = node.tokens->measure();
    const AnyMeasure tokens =
        length_.is_infinite() ? law : AnyMeasure(law.sample(own.split(2), length_.count()));
    loss += layer_error(layer, tokens, node.query, target, &gradient, task_.loss);
  }
  if (!lanes_) return loss;
  return add_mixture_lanes(layer, prompts, length_.count(), stream.split(1), first, task_.loss,
                           gradient);
}

LayerLoss LayerBatch::operator()(const Layer& layer, const Stream& stream) const {
  layer.check(task_.token_dim, task_.out_dim);
  const Index blocks = (prompts_ + kBlock - 1) / kBlock;
  std::vector<LayerLoss> parts(static_cast<std::size_t>(blocks), {0, layer.zero()});
  parallel_for(blocks, [&](std::int64_t block) {
    const Index first = block * kBlock;
    LayerLoss& part = parts[static_cast<std::size_t>(block)];
    part.loss = add(layer, stream, first, std::min(kBlock, prompts_ - first), part.gradient);
  });
  LayerLoss out{0, layer.zero()};
  for (const LayerLoss& part : parts) {
    out.loss += part.loss;
    out.gradient += part.gradient;
  }
  const double scale = factor_ / static_cast<double>(prompts_);
  out.loss *= scale;
  out.gradient *= scale;
  return out;
}

}  // namespace esscher
