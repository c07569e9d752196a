#include "esscher/risk/layer_batch.h"

#include <algorithm>
#include <memory>
#include <optional>
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

// One node after the other, at addresses of their own.
double LayerBatch::add_nodes(const Layer& layer, const Stream& stream, Index first, Index count,
                             Layer& gradient) const {
  std::vector<std::shared_ptr<const SharedMixture>> laws;
  Matrix queries(task_.token_dim, count), targets(task_.out_dim, count);
  double loss = 0;
  for (Index j = 0; j < count; ++j) {
    const Stream own = stream.split(0).split(static_cast<std::uint64_t>(first + j));
    const ContextNode node = draw_node(task_, own.split(0));
    const Vector target = task_.target(node, own.split(1));
    if (lanes_) {
      laws.push_back(node.tokens->shared());
      queries.col(j) = node.query;
      targets.col(j) = target;
      continue;
    }
    const AnyMeasure& law = node.tokens->measure();
    const AnyMeasure tokens =
        length_.is_infinite() ? law : AnyMeasure(law.sample(own.split(2), length_.count()));
    loss += layer_error(layer, tokens, node.query, target, &gradient, task_.loss);
  }
  if (!lanes_) return loss;
  return add_mixture_lanes(layer, {LaneLaws(laws), queries, targets}, length_.count(),
                           stream.split(1), first, task_.loss, gradient);
}

// All draws at once.
double LayerBatch::add_draws(const Layer& layer, const Stream& stream, Index first, Index count,
                             Layer& gradient) const {
  const SideBySide& sides = *task_.side_by_side;
  SideBySide::Draws draws = sides.draw(stream.split(0), first, count);
  if (lanes_) {
    return add_mixture_lanes(
        layer, {LaneLaws(sides, draws.means), std::move(draws.queries), std::move(draws.targets)},
        length_.count(), stream.split(1), first, task_.loss, gradient);
  }
  double loss = 0;
  std::optional<TokenLaw> law;
  for (Index j = 0; j < count; ++j) {
    if (!law || !task_.fixed_law) law.emplace(sides.law(draws, j));
    loss += layer_error(layer, law->measure(), draws.queries.col(j), draws.targets.col(j),
                        &gradient, task_.loss);
  }
  return loss;
}

LayerLoss LayerBatch::operator()(const Layer& layer, const Stream& stream) const {
  layer.check(task_.token_dim, task_.out_dim);
  const Index blocks = (prompts_ + kBlock - 1) / kBlock;
  std::vector<LayerLoss> parts(static_cast<std::size_t>(blocks), {0, layer.zero()});
  parallel_for(blocks, [&](std::int64_t block) {
    const Index first = block * kBlock;
    LayerLoss& part = parts[static_cast<std::size_t>(block)];
    const Index count = std::min(kBlock, prompts_ - first);
    part.loss = task_.side_by_side ? add_draws(layer, stream, first, count, part.gradient)
                                   : add_nodes(layer, stream, first, count, part.gradient);
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
