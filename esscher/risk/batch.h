// The loss of a batch of fresh prompts and its gradient in (U_h, r_h), h = 1..H.
//
//   prediction = sum_h r_h' zbar_h   (softmax)   or   sum_h r_h' S U_h (x,0),  S = (1/L) sum z z'
//   loss = mean over the batch of (prediction - y)^2, or one half of it
//
// Engines:
//   sampled  linear regression with Gaussian features, no tokens: two normals per token and head
//            direction (softmax, exact in law), one Wishart matrix per prompt (linear; cost
//            independent of L; 2 x 2 for one head), nothing (L = inf)
//   direct   any task: real tokens; at L = inf the tilted moments of the token law itself
// Softmax and linear attention with the same step stream see the same tasks and queries, so at L =
// infinity (Gaussian features) they are equal bit for bit. One head, sampled: float32 draws (a
// sequence of normals per prompt, random/normal_sequences.h), sums in double across blocks of
// tokens; relative error of a gradient 1e-6, and 1e-3 of the (vanishing) covariance when one token
// has all the weight.
#pragma once

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

  void add_lanes(const White& heads, const Stream& stream, Index first, Index count,
                 Sums& sums) const;
  void add_scores(const White& heads, const Stream& stream, Index prompt, Sums& sums) const;
  void add_tokens(std::span<const Readout> heads, const Stream& own, Sums& sums) const;
  void add_draw(std::span<const Readout> heads, const Stream& own, Sums& sums) const;
  void add(std::span<const Readout> heads, const White& white, const Stream& stream, Index first,
           Index count, Sums& sums) const;

  Index token_dim_;
  ModelKind kind_;
  Engine engine_;
  Length length_;
  Index prompts_;
  double residual_factor_;                    // d loss / d prediction = factor * (prediction - y)
  double loss_factor_;                        // loss = factor * sum of (prediction - y)^2
  std::optional<RegressionSampler> sampler_;  // linear regression
  std::optional<DrawFixer> fixer_;            // your own tasks; direct regression at L = infinity
};

}  // namespace esscher
