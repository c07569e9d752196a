// The sums of head_lanes.h in two visits to the same tokens, for reads that are known only when the
// means are: outputs depend on means, and the reads of several outputs on the outputs. The first
// visit leaves tokens and weights in memory, so that the second draws nothing and has no
// exponentials. Internal to risk/layer_lanes.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "esscher/base/scratch.h"
#include "esscher/risk/detail/head_lanes.h"

namespace esscher {

// Tokens of up to kTrainLanes prompts: [vectors][L width + 1, lanes].
class KeptTokens {
 public:
  KeptTokens(Index width, std::int64_t L);
  [[nodiscard]] float* from_lane(std::size_t o) const { return memory_.as<float>() + o * rows_; }

  bool are_drawn = false;

 private:
  std::size_t rows_;
  Scratch memory_;
};

// Weights of the heads of one kind, relative to the largest score up to their block, and these
// scores.
class KeptWeights {
 public:
  KeptWeights(Index heads, Index width, std::int64_t L);
  [[nodiscard]] std::size_t blocks() const { return blocks_; }
  // [L, lanes] of head h on the prompts in lanes o .. o + lanes - 1.
  [[nodiscard]] float* weights(Index h, std::size_t o) const {
    return memory_.as<float>() +
           (static_cast<std::size_t>(h * kTrainLanes) + o) * (length_ + blocks_);
  }
  // [blocks, lanes]
  [[nodiscard]] float* tops(Index h, std::size_t o, std::size_t lanes) const {
    return weights(h, o) + length_ * lanes;
  }

 private:
  std::size_t length_, blocks_;
  Scratch memory_;
};

// Whether tokens and weights fit into the L2 cache.
[[nodiscard]] bool fit_two_visits(Index width, Index heads, std::int64_t L);

// Fills mean (and s0) of prompts first .. first + count - 1 from tilt. Tokens are drawn unless they
// are in memory already.
void head_means(const WhiteTokens& law, ModelKind kind, std::int64_t L, const Stream& tokens,
                Index first, Index count, HeadRows& rows, KeptTokens& kept, KeptWeights& weights);

// Fills product from read, after head_means of the same rows.
void head_products(ModelKind kind, std::int64_t L, Index count, HeadRows& rows,
                   const KeptTokens& kept, const KeptWeights& weights);

}  // namespace esscher
