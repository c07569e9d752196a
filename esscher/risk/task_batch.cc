#include "esscher/risk/task_batch.h"

#include <algorithm>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"

namespace esscher {
namespace {

constexpr Index kChunk = 8;  // prompts per unit of parallel work

BatchLoss zero(std::span<const Readout> heads) {
  BatchLoss out;
  for (const Readout& head : heads) out.gradient.push_back(Readout::zero(head.dim()));
  return out;
}

}  // namespace

TaskBatch::TaskBatch(Task task, ModelKind kind, Length length, Index batch, bool half)
    : task_(std::move(task)), kind_(kind), length_(length), batch_(batch) {
  if (batch < 1) throw_argument("train", "batch", std::to_string(batch), "an integer >= 1");
  if (length == Length(0)) throw_argument("train", "length", "0", "an integer >= 1, or inf");
  if (!task_.draw) throw_argument("train", "task", "empty", "a task with a draw function");
  factor_ = (half ? 0.5 : 1.0) / static_cast<double>(batch);
}

void TaskBatch::add(std::span<const Readout> heads, const Stream& stream, BatchLoss& sums) const {
  const FixedDraw fixed = fix_draw(task_, length_, stream, 0, Engine::direct);
  const ContextDraw& draw = fixed.draw;
  std::vector<HeadMoments> moments;
  double residual = -draw.target;
  for (const Readout& head : heads) {
    check_dimension("train", "dimension of the model", head.dim(), task_.token_dim);
    moments.push_back(head_moments(draw.tokens, head.U * draw.query, head.r, kind_, true));
    residual += head.r.dot(moments.back().mean);
  }
  sums.loss += factor_ * residual * residual;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    sums.gradient[h].U += 2 * factor_ * residual * moments[h].product * draw.query.transpose();
    sums.gradient[h].r += 2 * factor_ * residual * moments[h].mean;
  }
}

BatchLoss TaskBatch::operator()(std::span<const Readout> heads, const Stream& stream) const {
  const Index chunks = (batch_ + kChunk - 1) / kChunk;
  std::vector<BatchLoss> parts(static_cast<std::size_t>(chunks), zero(heads));
  parallel_for(chunks, [&](std::int64_t c) {
    for (Index i = c * kChunk; i < std::min(batch_, (c + 1) * kChunk); ++i) {
      add(heads, stream.split(static_cast<std::uint64_t>(i)), parts[static_cast<std::size_t>(c)]);
    }
  });
  BatchLoss total = zero(heads);
  for (const BatchLoss& part : parts) {
    total.loss += part.loss;
    for (std::size_t h = 0; h < heads.size(); ++h) {
      total.gradient[h].U += part.gradient[h].U;
      total.gradient[h].r += part.gradient[h].r;
    }
  }
  return total;
}

}  // namespace esscher
