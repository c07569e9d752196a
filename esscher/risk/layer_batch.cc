#include "esscher/risk/layer_batch.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/risk/layer_error.h"
#include "esscher/risk/layer_risk.h"

namespace esscher {
namespace {

constexpr Index kBlock = 8;  // prompts of one piece of work

}  // namespace

LayerBatch::LayerBatch(ContextTask task, Length length, Index prompts, bool half)
    : task_(std::move(task)), length_(length), prompts_(prompts), factor_(half ? 1 : 2) {
  if (prompts < 1) throw_argument("train", "batch", std::to_string(prompts), "an integer >= 1");
  if (length == Length(0)) throw_argument("train", "length", "0", "an integer >= 1, or inf");
  if (!length.is_infinite()) check_prompt_memory(task_, length, 1);
}

double LayerBatch::add(const Layer& layer, const Stream& own, Layer* gradient) const {
  const ContextNode node = draw_node(task_, own.split(0));
  const Vector target = task_.target(node, own.split(1));
  const AnyMeasure& law = node.tokens->measure();
  if (length_.is_infinite()) return layer_error(layer, law, node.query, target, gradient);
  const AnyMeasure prompt(law.sample(own.split(2), length_.count()));
  return layer_error(layer, prompt, node.query, target, gradient);
}

LayerLoss LayerBatch::operator()(const Layer& layer, const Stream& stream) const {
  layer.check(task_.token_dim, task_.out_dim);
  const Index blocks = (prompts_ + kBlock - 1) / kBlock;
  std::vector<LayerLoss> parts(static_cast<std::size_t>(blocks), {0, layer.zero()});
  parallel_for(blocks, [&](std::int64_t block) {
    LayerLoss& part = parts[static_cast<std::size_t>(block)];
    for (Index i = block * kBlock; i < std::min(prompts_, (block + 1) * kBlock); ++i) {
      part.loss += add(layer, stream.split(static_cast<std::uint64_t>(i)), &part.gradient);
    }
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
