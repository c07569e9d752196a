// The loss of a batch of fresh prompts and its gradient in (U_h, r_h), h = 1..H.
//
//   prediction = sum_h r_h' zbar_h   (softmax)   or   sum_h r_h' S U_h (x,0),  S = (1/L) sum z z'
//   loss = mean over the batch of (prediction - y)^2, or one half of it
//
// Engines:
//   sampled  Gaussian features, no tokens: two normals per token and head direction (softmax, exact
//            in law), one Wishart matrix per prompt (linear; cost independent of L; 2 x 2 for one
//            head), nothing (L = inf)
//   direct   any features: real tokens; at L = inf the tilted moments of the token law itself
// Softmax and linear attention with the same step stream see the same tasks and queries, so at
// L = infinity (Gaussian features) they are equal bit for bit.
// One head, sampled: float32 draws (a run of normals per prompt, random/sfc-inl.h), sums in double
// across blocks of tokens; relative error of a gradient 1e-6, and 1e-3 of the (vanishing)
// covariance when one token has all the weight.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/length.h"
#include "esscher/random/stream.h"
#include "esscher/risk/model_kind.h"
#include "esscher/risk/readout.h"
#include "esscher/risk/sample_risk.h"
#include "esscher/task/features.h"
#include "esscher/task/regression.h"

namespace esscher {

enum class GradientEngine { sampled, direct, exact };

std::string_view name(GradientEngine engine);
GradientEngine parse_gradient_engine(const std::string& text);

struct BatchLoss {
  double loss = 0;
  std::vector<Readout> gradient;  // [H]
};

class PromptBatch {
 public:
  // Throws CapabilityError for a pair of features, length and engine that does not exist, naming
  // what does. engine must be sampled or direct.
  PromptBatch(const LinearRegressionTask& task, ModelKind kind, GradientEngine engine,
              Length length, Index batch, bool half);

  // A pure function of (heads, stream): parallel over prompts, same bits for any thread count.
  [[nodiscard]] BatchLoss operator()(std::span<const Readout> heads, const Stream& stream) const;

 private:
  struct Heads;
  struct Sums;

  void add_sampled_pair(const Heads& heads, const Stream& stream, Index first, Index count,
                        Sums& sums) const;
  void add_one(const Heads& heads, const Stream& stream, Index prompt, Sums& sums) const;
  void add_direct(std::span<const Readout> heads, const Stream& stream, Index prompt,
                  Sums& sums) const;
  void add_limit(std::span<const Readout> heads, const Stream& stream, Index prompt,
                 Sums& sums) const;

  RegressionSampler sampler_;
  Task law_;  // draws token laws, for direct at L = infinity
  ModelKind kind_;
  GradientEngine engine_;
  Length length_;
  Index batch_;
  double residual_factor_;  // d loss / d prediction = factor * (prediction - y)
  double loss_factor_;
};

}  // namespace esscher
