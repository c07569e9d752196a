// The loss of a batch of fresh prompts and its gradient in (U_h, r_h), h = 1..H.
//
//   prediction = sum_h r_h' zbar_h   (softmax)   or   sum_h r_h' S U_h (x,0),  S = (1/L) sum z z'
//   loss = mean over the batch of (prediction - y)^2, or one half of it
//
// Engines:
//   sampled  linear regression with Gaussian features. One head: two normals per token (softmax,
//            exact in law), a 2 x 2 Wishart matrix (linear; cost independent of L). Several heads:
//            white tokens that all heads share (softmax), one Wishart matrix (linear). Nothing is
//            drawn of an infinite prompt.
//   direct   any task. Linear regression with any features: white tokens, as above. Tasks of your
//            own: real tokens. At L = inf the tilted moments of the token law itself.
// Softmax and linear attention with the same step stream see the same tasks and queries, so at L =
// infinity (Gaussian features) they are equal bit for bit.
//
// Linear regression at finite length has its prompts side by side in SIMD lanes: float32 draws (a
// sequence per prompt, random/sfc-inl.h), sums in double across blocks of tokens; relative error of
// a gradient 1e-6, and 1e-3 of the (vanishing) covariance when one token has all the weight.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "esscher/base/estimate.h"
#include "esscher/base/length.h"
#include "esscher/random/stream.h"
#include "esscher/risk/model_kind.h"
#include "esscher/risk/readout.h"
#include "esscher/risk/sample_risk.h"
#include "esscher/task/features.h"
#include "esscher/task/task.h"

namespace esscher {

struct BatchLoss {
  double loss = 0;
  std::vector<Readout> gradient;  // [H]
};

// sampled or direct: what `asked` is, or with automatic the best that the task has. Throws
// CapabilityError for an engine that the task does not have, naming one it has.
Engine batch_engine(const AnyTask& task, Engine asked);

class Batch {
 public:
  // `prompts` fresh prompts; `half` for half the squared error. The engine is batch_engine(task,
  // engine).
  Batch(const AnyTask& task, ModelKind kind, Engine engine, Length length, Index prompts,
        bool half);

  // A pure function of (heads, stream). It is parallel over prompts, with the same bits for any
  // thread count.
  [[nodiscard]] BatchLoss operator()(std::span<const Readout> heads, const Stream& stream) const;

 private:
  struct White;
  struct Sums;
  // How the prompts of a batch are answered, chosen from task, engine, length and number of heads.
  enum class Way { pairs, lanes, laws, draws };

  [[nodiscard]] Way way(std::size_t heads) const;
  void add_lanes(Way way, const White& heads, const Stream& stream, Index first, Index count,
                 Sums& sums) const;
  void add_draw(std::span<const Readout> heads, const ContextDraw& draw, Sums& sums) const;
  void add(Way way, std::span<const Readout> heads, const White& white, const Stream& stream,
           Index first, Index count, Sums& sums) const;

  Index token_dim_;
  ModelKind kind_;
  Engine engine_;
  Length length_;
  Index prompts_;
  double residual_factor_;                    // d loss / d prediction = factor * (prediction - y)
  double loss_factor_;                        // loss = factor * sum of (prediction - y)^2
  std::optional<RegressionSampler> sampler_;  // linear regression
  std::function<ContextDraw(const RegressionDraw&)> context_;  // its laws, for direct at L = inf
  std::optional<DrawFixer> fixer_;                             // your own tasks
};

}  // namespace esscher
