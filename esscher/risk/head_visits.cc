#include "esscher/risk/detail/head_visits.h"

#include <algorithm>

#include "esscher/simd/detail/dispatch.h"
#include "esscher/task/token_lanes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/risk/head_visits.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h, so that each target gets its own body.
#include "esscher/risk/head_block-inl.h"
#include "esscher/simd/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

// out[k] = direction'u_k for `count` tokens, D coordinates each. Returns the largest of `top` and
// these. Eight sums at once hide the latency of a multiply-add.
template <int count>
HWY_INLINE VF32 dots_of(const float* u, std::size_t D, const float* direction, VF32 top,
                        float* out) {
  const DF32 df;
  const std::size_t lanes = hn::Lanes(df);
  VF32 sum[count];
  HWY_UNROLL(8)
  for (int k = 0; k < count; ++k) sum[k] = hn::Zero(df);
  for (std::size_t i = 0; i < D; ++i) {
    const VF32 a = hn::Load(df, direction + i * lanes);
    HWY_UNROLL(8)
    for (int k = 0; k < count; ++k) {
      sum[k] =
          hn::MulAdd(a, hn::Load(df, u + (static_cast<std::size_t>(k) * D + i) * lanes), sum[k]);
    }
  }
  HWY_UNROLL(8)
  for (int k = 0; k < count; ++k) {
    top = hn::Max(top, sum[k]);
    hn::Store(sum[k], df, out + static_cast<std::size_t>(k) * lanes);
  }
  return top;
}

HWY_INLINE VF32 dots(const float* u, std::size_t tokens, std::size_t D, const float* direction,
                     VF32 top, float* out) {
  const std::size_t lanes = hn::Lanes(DF32());
  std::size_t l = 0;
  for (; l + 8 <= tokens; l += 8) {
    top = dots_of<8>(u + l * D * lanes, D, direction, top, out + l * lanes);
  }
  for (; l < tokens; ++l) top = dots_of<1>(u + l * D * lanes, D, direction, top, out + l * lanes);
  return top;
}

// out[k] = sum_l w_l u_lk for K coordinates.
template <int K>
HWY_INLINE void weigh(const float* u, std::size_t tokens, std::size_t D, const float* w,
                      float* out) {
  const DF32 df;
  const std::size_t lanes = hn::Lanes(df);
  VF32 sum[K];
  HWY_UNROLL(12)
  for (int k = 0; k < K; ++k) sum[k] = hn::Zero(df);
  for (std::size_t l = 0; l < tokens; ++l) {
    const VF32 weight = hn::Load(df, w + l * lanes);
    HWY_UNROLL(12)
    for (int k = 0; k < K; ++k) {
      sum[k] = hn::MulAdd(weight, hn::Load(df, u + static_cast<std::size_t>(k) * lanes), sum[k]);
    }
    u += D * lanes;
  }
  HWY_UNROLL(12)
  for (int k = 0; k < K; ++k) hn::Store(sum[k], df, out + static_cast<std::size_t>(k) * lanes);
}

// total = factor * total + scale * sum for one row of lanes, in double.
HWY_INLINE void add_scaled(VF32 factor, VF32 scale, VF32 sum, double* total) {
  const DF32 df;
  const DF64 d;
  const hn::Rebind<float, DF64> half;
  HWY_ALIGN_MAX float part[3][hn::MaxLanes(DF32())];
  hn::Store(factor, df, part[0]);
  hn::Store(scale, df, part[1]);
  hn::Store(sum, df, part[2]);
  for (std::size_t j = 0; j < hn::Lanes(df); j += hn::Lanes(d)) {
    const auto at = [&](int k) HWY_ATTR { return hn::PromoteTo(d, hn::LoadU(half, part[k] + j)); };
    const VF64 kept = hn::Mul(at(0), hn::LoadU(d, total + j));
    hn::StoreU(hn::MulAdd(at(1), at(2), kept), d, total + j);
  }
}

// Adds scale * sum_l w_l u_l to factor * total, [D] rows, in tiles of nearly equal size whose sums
// fit into registers.
HWY_INLINE void add_weighed(const float* u, std::size_t tokens, std::size_t D, const float* w,
                            VF32 factor, VF32 scale, double* total) {
  const DF32 df;
  const std::size_t lanes = hn::Lanes(df);
  HWY_ALIGN_MAX float sum[12 * hn::MaxLanes(DF32())];
  const std::size_t tiles = (D + 11) / 12;
  std::size_t i = 0;
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const std::size_t size = (D - i) / (tiles - tile);
    const float* const from = u + i * lanes;
    switch (size) {
      case 2: weigh<2>(from, tokens, D, w, sum); break;
      case 3: weigh<3>(from, tokens, D, w, sum); break;
      case 4: weigh<4>(from, tokens, D, w, sum); break;
      case 5: weigh<5>(from, tokens, D, w, sum); break;
      case 6: weigh<6>(from, tokens, D, w, sum); break;
      case 7: weigh<7>(from, tokens, D, w, sum); break;
      case 8: weigh<8>(from, tokens, D, w, sum); break;
      case 9: weigh<9>(from, tokens, D, w, sum); break;
      case 10: weigh<10>(from, tokens, D, w, sum); break;
      case 11: weigh<11>(from, tokens, D, w, sum); break;
      case 12: weigh<12>(from, tokens, D, w, sum); break;
      default: break;  // D >= 2, so tiles have at least two coordinates
    }
    for (std::size_t k = 0; k < size; ++k, ++i) {
      add_scaled(factor, scale, hn::Load(df, sum + k * lanes), total + i * kTrainLanes);
    }
  }
}

// Scores in base 2 become weights 2^(score - top). Returns their sum.
HWY_INLINE VF32 to_weights(std::size_t tokens, VF32 top, float* w) {
  const DF32 df;
  const std::size_t lanes = hn::Lanes(df);
  const VF32 lowest = hn::Set(df, kLowestExp2);
  VF32 s0 = hn::Zero(df);
  for (std::size_t l = 0; l < tokens; ++l) {
    const VF32 score = hn::Sub(hn::Load(df, w + l * lanes), top);
    const VF32 weight = exp2_in_range(hn::Max(score, lowest));
    hn::Store(weight, df, w + l * lanes);
    s0 = hn::Add(s0, weight);
  }
  return s0;
}

// t becomes w (t - centre). Returns the sum.
HWY_INLINE VF32 to_changes(std::size_t tokens, VF32 centre, const float* w, float* t) {
  const DF32 df;
  const std::size_t lanes = hn::Lanes(df);
  VF32 sum = hn::Zero(df);
  for (std::size_t l = 0; l < tokens; ++l) {
    const VF32 change =
        hn::Mul(hn::Load(df, w + l * lanes), hn::Sub(hn::Load(df, t + l * lanes), centre));
    hn::Store(change, df, t + l * lanes);
    sum = hn::Add(sum, change);
  }
  return sum;
}

HWY_INLINE VF32 two_to(VF32 y) { return exp2_in_range(hn::Max(y, hn::Set(DF32(), kLowestExp2))); }

// Where a block of the tokens of a vector of prompts begins.
struct BlockPlace {
  std::size_t index, first, tokens;
};

template <class Body>
HWY_INLINE void for_blocks(Index d, std::int64_t L, const Body& body) {
  const auto most = static_cast<std::size_t>(tokens_per_block(d));
  const auto length = static_cast<std::size_t>(L);
  for (std::size_t b = 0; b * most < length; ++b) {
    body(BlockPlace{b, b * most, std::min(most, length - b * most)});
  }
}

// Adds a block, u [tokens * D, lanes], to mean and s0 of head h in lanes o .. o + lanes - 1; tilt
// [D] rows of floats. Weights are relative to the largest score so far, which is left in `tops`.
template <bool softmax>
HWY_INLINE void add_to_means(const BlockPlace& block, Index h, std::size_t o, const float* u,
                             const float* tilt, const KeptWeights& weights, HeadRows& rows) {
  const DF32 df;
  const std::size_t lanes = hn::Lanes(df), D = static_cast<std::size_t>(rows.dim()) + 1;
  const VF32 one = hn::Set(df, 1.0F);
  float* const w = weights.weights(h, o) + block.first * lanes;
  float* const tops = weights.tops(h, o, lanes) + block.index * lanes;
  const VF32 before = block.index == 0 ? hn::Set(df, -1e30F) : hn::Load(df, tops - lanes);
  const VF32 top = dots(u, block.tokens, D, tilt, before, w);
  hn::Store(top, df, tops);
  VF32 kept = one;
  if constexpr (softmax) {
    kept = two_to(hn::Sub(before, top));
    add_scaled(kept, one, to_weights(block.tokens, top, w), rows.s0(h) + o);
  }
  add_weighed(u, block.tokens, D, w, kept, one, rows.mean(h, 0) + o);
}

// Product and st of head h, about the centre f [lanes]; read [D] rows of floats, work [block] rows.
template <bool softmax>
void product_of_head(std::int64_t L, Index h, std::size_t o, const float* read, VF32 f,
                     const float* tokens, const KeptWeights& weights, float* work, HeadRows& rows) {
  const DF32 df;
  const std::size_t lanes = hn::Lanes(df), D = static_cast<std::size_t>(rows.dim()) + 1;
  const VF32 one = hn::Set(df, 1.0F);
  const float* const tops = weights.tops(h, o, lanes);
  for_blocks(rows.dim(), L, [&](const BlockPlace& block) HWY_ATTR {
    const float* const u = tokens + block.first * D * lanes;
    dots(u, block.tokens, D, read, one, work);
    VF32 scale = one;
    if constexpr (softmax) {
      const VF32 last = hn::Load(df, tops + (weights.blocks() - 1) * lanes);
      scale = two_to(hn::Sub(hn::Load(df, tops + block.index * lanes), last));
      const float* const w = weights.weights(h, o) + block.first * lanes;
      add_scaled(one, scale, to_changes(block.tokens, f, w, work), rows.st(h) + o);
    }
    add_weighed(u, block.tokens, D, work, one, scale, rows.product(h, 0) + o);
  });
}

// Divides by s0, or by L.
template <bool softmax>
void divide_means(std::int64_t L, Index h, std::size_t o, HeadRows& rows) {
  const DF64 d;
  const VF64 share = hn::Set(d, 1 / static_cast<double>(L));
  for (std::size_t j = o; j < o + hn::Lanes(DF32()); j += hn::Lanes(d)) {
    const VF64 scale = softmax ? hn::Div(hn::Set(d, 1), hn::LoadU(d, rows.s0(h) + j)) : share;
    for (Index i = 0; i <= rows.dim(); ++i) {
      double* const mean = rows.mean(h, i) + j;
      hn::StoreU(hn::Mul(scale, hn::LoadU(d, mean)), d, mean);
    }
  }
}

// The same of products, which lose what their centre differs from the mean of t.
template <bool softmax>
void divide_products(std::int64_t L, Index h, std::size_t o, HeadRows& rows) {
  const DF64 d;
  const VF64 share = hn::Set(d, 1 / static_cast<double>(L));
  for (std::size_t j = o; j < o + hn::Lanes(DF32()); j += hn::Lanes(d)) {
    const VF64 scale = softmax ? hn::Div(hn::Set(d, 1), hn::LoadU(d, rows.s0(h) + j)) : share;
    const VF64 rest = softmax ? hn::Mul(scale, hn::LoadU(d, rows.st(h) + j)) : hn::Zero(d);
    for (Index i = 0; i <= rows.dim(); ++i) {
      double* const product = rows.product(h, i) + j;
      const VF64 sum = hn::Mul(scale, hn::LoadU(d, product));
      hn::StoreU(hn::NegMulAdd(rest, hn::LoadU(d, rows.mean(h, i) + j), sum), d, product);
    }
  }
}

// r~'mean in float, [lanes].
HWY_INLINE VF32 centre_of(Index h, std::size_t o, HeadRows& rows) {
  const DF32 df;
  const DF64 d;
  const hn::Rebind<float, DF64> half;
  HWY_ALIGN_MAX float out[hn::MaxLanes(DF32())];
  for (std::size_t j = 0; j < hn::Lanes(df); j += hn::Lanes(d)) {
    VF64 sum = hn::Zero(d);
    for (Index i = 0; i <= rows.dim(); ++i) {
      const VF64 mean = hn::LoadU(d, rows.mean(h, i) + o + j);
      sum = hn::MulAdd(hn::LoadU(d, rows.read(h, i) + o + j), mean, sum);
    }
    hn::StoreU(hn::DemoteTo(half, sum), half, out + j);
  }
  return hn::Load(df, out);
}

// Tokens are drawn a block at a time, so that they are in the L1 cache when the heads read them.
template <bool softmax>
void means_of(const WhiteTokens& law, std::int64_t L, const Stream& stream, Index first,
              Index count, HeadRows& rows, KeptTokens& kept, KeptWeights& weights) {
  const std::size_t lanes = hn::Lanes(DF32()), D = static_cast<std::size_t>(rows.dim()) + 1;
  const auto most = static_cast<std::size_t>(tokens_per_block(rows.dim()));
  const auto H = static_cast<std::size_t>(rows.heads());
  const auto K = static_cast<std::size_t>(law.components);
  const double unit = softmax ? 1.4426950408889634 : 1.0;  // scores in base 2
  const Scratch memory((H * D + K + 2 * most * D + 2) * lanes * sizeof(float));
  float* const tilts = memory.as<float>();
  float* const below = tilts + H * D * lanes;
  float* const work = below + K * lanes;
  for (std::size_t o = 0; o < static_cast<std::size_t>(count); o += lanes) {
    round_rows(rows.tilt(0, 0) + o, unit, H * D, lanes, tilts);
    if (K > 1) round_rows(law.below + o, 1, K - 1, lanes, below);
    Sfc32 state = start_prompts(stream, first, o);
    for_blocks(rows.dim(), L, [&](const BlockPlace& block) HWY_ATTR {
      float* const u = kept.from_lane(o) + block.first * D * lanes;
      if (!kept.are_drawn) next_white(law, state, block.tokens, D, below, u, work);
      for (std::size_t h = 0; h < H; ++h) {
        add_to_means<softmax>(block, static_cast<Index>(h), o, u, tilts + h * D * lanes, weights,
                              rows);
      }
    });
    for (Index h = 0; h < rows.heads(); ++h) divide_means<softmax>(L, h, o, rows);
  }
  kept.are_drawn = true;
}

template <bool softmax>
void products_of(std::int64_t L, Index count, HeadRows& rows, const KeptTokens& kept,
                 const KeptWeights& weights) {
  const std::size_t lanes = hn::Lanes(DF32()), D = static_cast<std::size_t>(rows.dim()) + 1;
  const auto most = static_cast<std::size_t>(tokens_per_block(rows.dim()));
  const Scratch memory((D + most) * lanes * sizeof(float));
  float* const read = memory.as<float>();
  float* const work = read + D * lanes;
  for (std::size_t o = 0; o < static_cast<std::size_t>(count); o += lanes) {
    for (Index h = 0; h < rows.heads(); ++h) {
      round_rows(rows.read(h, 0) + o, 1, D, lanes, read);
      product_of_head<softmax>(L, h, o, read, centre_of(h, o, rows), kept.from_lane(o), weights,
                               work, rows);
      divide_products<softmax>(L, h, o, rows);
    }
  }
}

void visit_means(const WhiteTokens& law, bool softmax, std::int64_t L, const Stream& stream,
                 Index first, Index count, HeadRows& rows, KeptTokens& kept, KeptWeights& weights) {
  const auto visit = softmax ? means_of<true> : means_of<false>;
  visit(law, L, stream, first, count, rows, kept, weights);
}

void visit_products(bool softmax, std::int64_t L, Index count, HeadRows& rows,
                    const KeptTokens& kept, const KeptWeights& weights) {
  const auto visit = softmax ? products_of<true> : products_of<false>;
  visit(L, count, rows, kept, weights);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {

HWY_EXPORT(visit_means);
HWY_EXPORT(visit_products);

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

std::size_t token_rows(Index width, std::int64_t L) {
  return static_cast<std::size_t>(width) * static_cast<std::size_t>(L) + 1;
}

}  // namespace

KeptTokens::KeptTokens(Index width, std::int64_t L)
    : rows_(token_rows(width, L)), memory_(rows_ * kTrainLanes * sizeof(float)) {}

KeptWeights::KeptWeights(Index heads, Index width, std::int64_t L)
    : length_(static_cast<std::size_t>(L)) {
  const auto most = static_cast<std::size_t>(tokens_per_block(width - 1));
  blocks_ = (length_ + most - 1) / most;
  memory_ =
      Scratch(static_cast<std::size_t>(heads * kTrainLanes) * (length_ + blocks_) * sizeof(float));
}

bool fit_two_visits(Index width, Index heads, std::int64_t L) {
  const auto rows = static_cast<double>(width + heads) * static_cast<double>(L);
  return rows * kTrainLanes * sizeof(float) <= static_cast<double>(kMostBytes);
}

void head_means(const WhiteTokens& law, ModelKind kind, std::int64_t L, const Stream& tokens,
                Index first, Index count, HeadRows& rows, KeptTokens& kept, KeptWeights& weights) {
  ESSCHER_DISPATCH(visit_means)
  (law, kind == ModelKind::softmax, L, tokens, first, count, rows, kept, weights);
}

void head_products(ModelKind kind, std::int64_t L, Index count, HeadRows& rows,
                   const KeptTokens& kept, const KeptWeights& weights) {
  ESSCHER_DISPATCH(visit_products)
  (kind == ModelKind::softmax, L, count, rows, kept, weights);
}

}  // namespace esscher
#endif
