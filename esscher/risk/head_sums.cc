#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "esscher/risk/detail/head_lanes.h"
#include "esscher/simd/detail/dispatch.h"
#include "esscher/task/token_lanes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/risk/head_sums.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h, so that each target gets its own body.
#include "esscher/risk/head_block-inl.h"
#include "esscher/simd/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

// A block of tokens and what one head makes of it. All arrays are rows of `lanes` floats.
struct TokenBlock {
  const float* u;      // [tokens * D]
  std::size_t tokens;  // <= tokens_per_block
  std::size_t D;
  float* weights;  // [tokens]: scores, then weights
  float* values;   // [tokens]: t
};

// Scores and values of `count` tokens from token l on. With four tokens at once a tilt and a
// functional are loaded once for eight multiply-adds.
template <int count>
HWY_INLINE void scores_of(const TokenBlock& block, const float* tilt, const float* read,
                          std::size_t l, VF32& top) {
  const DF32 df;
  const std::size_t lanes = hn::Lanes(df);
  const float* u = block.u + l * block.D * lanes;
  VF32 s[count];
  VF32 t[count];
  HWY_UNROLL(4)
  for (int k = 0; k < count; ++k) s[k] = t[k] = hn::Zero(df);
  for (std::size_t i = 0; i < block.D; ++i) {
    const VF32 a = hn::Load(df, tilt + i * lanes);
    const VF32 r = hn::Load(df, read + i * lanes);
    HWY_UNROLL(4)
    for (int k = 0; k < count; ++k) {
      const VF32 x = hn::Load(df, u + (static_cast<std::size_t>(k) * block.D + i) * lanes);
      s[k] = hn::MulAdd(a, x, s[k]);
      t[k] = hn::MulAdd(r, x, t[k]);
    }
  }
  HWY_UNROLL(4)
  for (int k = 0; k < count; ++k) {
    top = hn::Max(top, s[k]);
    hn::Store(s[k], df, block.weights + (l + static_cast<std::size_t>(k)) * lanes);
    hn::Store(t[k], df, block.values + (l + static_cast<std::size_t>(k)) * lanes);
  }
}

// Returns the largest of `top` and the scores.
HWY_INLINE VF32 scores(const TokenBlock& block, const float* tilt, const float* read, VF32 top) {
  std::size_t l = 0;
  for (; l + 4 <= block.tokens; l += 4) scores_of<4>(block, tilt, read, l, top);
  for (; l < block.tokens; ++l) scores_of<1>(block, tilt, read, l, top);
  return top;
}

// What one head adds to its totals after a block. Rows of lanes: add_row reads them as floats.
struct BlockSums {
  HWY_ALIGN_MAX float kept[hn::MaxLanes(DF32())];    // factor of the earlier sums
  HWY_ALIGN_MAX float centre[hn::MaxLanes(DF32())];  // near the mean of t
  HWY_ALIGN_MAX float s0[hn::MaxLanes(DF32())];      // sum of weights
  HWY_ALIGN_MAX float st[hn::MaxLanes(DF32())];      // sum of weights times (t - centre)
  HWY_ALIGN_MAX float none[hn::MaxLanes(DF32())];    // 0
};

// Scores in base 2 become weights 2^(score - now); `before` is the maximum of earlier blocks.
HWY_INLINE void softmax_weights(const TokenBlock& block, VF32 before, VF32 now, BlockSums& sums) {
  const DF32 df;
  const std::size_t lanes = hn::Lanes(df);
  const VF32 lowest = hn::Set(df, kLowestExp2);
  VF32 s0 = hn::Zero(df);
  VF32 st = hn::Zero(df);
  for (std::size_t l = 0; l < block.tokens; ++l) {
    const VF32 score = hn::Sub(hn::Load(df, block.weights + l * lanes), now);
    const VF32 w = exp2_in_range(hn::Max(score, lowest));
    hn::Store(w, df, block.weights + l * lanes);
    s0 = hn::Add(s0, w);
    st = hn::MulAdd(w, hn::Load(df, block.values + l * lanes), st);
  }
  hn::Store(exp2_in_range(hn::Max(hn::Sub(before, now), lowest)), df, sums.kept);
  hn::Store(hn::Div(st, s0), df, sums.centre);
  hn::Store(s0, df, sums.s0);
}

// total = kept * total + sum + centre * other, in double, for one row of lanes.
HWY_INLINE void add_row(const float* kept, const float* sum, const float* centre,
                        const float* other, double* total) {
  const DF64 d;
  const hn::Rebind<float, DF64> half;
  for (std::size_t j = 0; j < hn::Lanes(DF32()); j += hn::Lanes(d)) {
    const auto at = [&](const float* row)
                        HWY_ATTR { return hn::PromoteTo(d, hn::LoadU(half, row + j)); };
    const VF64 now = hn::MulAdd(at(kept), hn::LoadU(d, total + j), at(sum));
    hn::StoreU(hn::MulAdd(at(centre), at(other), now), d, total + j);
  }
}

// Adds w u and v u of K coordinates from i on, with v = w (t - centre) for softmax and v = t for linear
// attention. K <= 6, because twelve sums fit into sixteen registers. means and products point to the
// totals of coordinate i.
template <bool softmax, int K>
HWY_INLINE void add_coordinates(const TokenBlock& block, std::size_t i, BlockSums& sums,
                                double* means, double* products) {
  const DF32 df;
  const std::size_t lanes = hn::Lanes(df);
  const VF32 centre = hn::Load(df, sums.centre);
  VF32 first[K];
  VF32 second[K];
  VF32 st = hn::Zero(df);
  HWY_UNROLL(6)
  for (int k = 0; k < K; ++k) first[k] = second[k] = hn::Zero(df);
  const float* u = block.u + i * lanes;
  for (std::size_t l = 0; l < block.tokens; ++l) {
    const VF32 w = hn::Load(df, block.weights + l * lanes);
    VF32 v = hn::Load(df, block.values + l * lanes);
    if constexpr (softmax) {
      v = hn::Mul(w, hn::Sub(v, centre));
      st = hn::Add(st, v);
    }
    HWY_UNROLL(6)
    for (int k = 0; k < K; ++k) {
      const VF32 x = hn::Load(df, u + static_cast<std::size_t>(k) * lanes);
      first[k] = hn::MulAdd(w, x, first[k]);
      second[k] = hn::MulAdd(v, x, second[k]);
    }
    u += block.D * lanes;
  }
  hn::Store(st, df, sums.st);
  HWY_ALIGN_MAX float sum[2][K][hn::MaxLanes(DF32())];
  HWY_UNROLL(6)
  for (int k = 0; k < K; ++k) {
    hn::Store(first[k], df, sum[0][k]);
    hn::Store(second[k], df, sum[1][k]);
  }
  for (int k = 0; k < K; ++k) {
    add_row(sums.kept, sum[0][k], sums.none, sums.none, means + k * kTrainLanes);
    add_row(sums.kept, sum[1][k], sums.centre, sum[0][k], products + k * kTrainLanes);
  }
}

// All coordinates, in tiles of nearly equal size.
template <bool softmax>
HWY_INLINE void add_sums(const TokenBlock& block, BlockSums& sums, double* means,
                         double* products) {
  const std::size_t tiles = (block.D + 5) / 6;
  std::size_t i = 0;
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const std::size_t size = (block.D - i) / (tiles - tile);
    double* const m = means + i * kTrainLanes;
    double* const p = products + i * kTrainLanes;
    switch (size) {
      case 2: add_coordinates<softmax, 2>(block, i, sums, m, p); break;
      case 3: add_coordinates<softmax, 3>(block, i, sums, m, p); break;
      case 4: add_coordinates<softmax, 4>(block, i, sums, m, p); break;
      case 5: add_coordinates<softmax, 5>(block, i, sums, m, p); break;
      case 6: add_coordinates<softmax, 6>(block, i, sums, m, p); break;
      default: break;  // D >= 2, so tiles have at least two coordinates
    }
    i += size;
  }
}

// Memory of one vector of prompts, aligned parts of one block.
struct HeadBuffers {
  HeadBuffers(std::size_t H, std::size_t D, std::size_t block)
      : lanes(hn::Lanes(DF32())),
        memory((2 * H * D + H + 3 * block * D + 3 + 2 * block + D) * lanes * sizeof(float)),
        tilts(memory.as<float>()),
        reads(tilts + H * D * lanes),
        tops(reads + H * D * lanes),
        u(tops + H * lanes),
        work(u + (block * D + 1) * lanes),
        weights(work + (2 * block * D + 2) * lanes),
        values(weights + block * lanes),
        below(values + block * lanes) {}

  std::size_t lanes;
  Scratch memory;
  float *tilts, *reads, *tops, *u, *work, *weights, *values, *below;
};

// Turns the sums of lanes o .. o + lanes - 1 into means and products.
void divide(bool softmax, std::int64_t L, std::size_t o, std::size_t lanes, HeadRows& rows) {
  const DF64 d;
  const VF64 share = hn::Set(d, 1 / static_cast<double>(L));
  for (Index h = 0; h < rows.heads(); ++h) {
    const double* s0 = rows.s0(h);
    const double* st = rows.st(h);
    for (std::size_t j = o; j < o + lanes; j += hn::Lanes(d)) {
      const VF64 scale = softmax ? hn::Div(hn::Set(d, 1), hn::LoadU(d, s0 + j)) : share;
      const VF64 f = softmax ? hn::Mul(hn::LoadU(d, st + j), scale) : hn::Zero(d);
      for (Index i = 0; i <= rows.dim(); ++i) {
        const VF64 mean = hn::Mul(scale, hn::LoadU(d, rows.mean(h, i) + j));
        const VF64 product = hn::Mul(scale, hn::LoadU(d, rows.product(h, i) + j));
        hn::StoreU(mean, d, rows.mean(h, i) + j);
        hn::StoreU(hn::NegMulAdd(f, mean, product), d, rows.product(h, i) + j);
      }
    }
  }
}

// One head on one block of the prompts in lanes o .. o + lanes - 1.
template <bool softmax>
HWY_INLINE void add_head(const TokenBlock& block, Index h, std::size_t o, HeadBuffers& buffers,
                         HeadRows& rows) {
  const DF32 df;
  const auto at = static_cast<std::size_t>(h);
  const std::size_t lanes = buffers.lanes;
  const VF32 before = hn::Load(df, buffers.tops + at * lanes);
  const VF32 top = scores(block, buffers.tilts + at * block.D * lanes,
                          buffers.reads + at * block.D * lanes, before);
  BlockSums sums;
  hn::Store(hn::Zero(df), df, sums.none);
  hn::Store(hn::Zero(df), df, sums.st);
  if constexpr (softmax) {
    softmax_weights(block, before, top, sums);
    hn::Store(top, df, buffers.tops + at * lanes);
  } else {
    hn::Store(hn::Set(df, 1.0F), df, sums.kept);
    hn::Store(hn::Zero(df), df, sums.centre);
  }
  add_sums<softmax>(block, sums, rows.mean(h, 0) + o, rows.product(h, 0) + o);
  if constexpr (softmax) {
    add_row(sums.kept, sums.s0, sums.none, sums.none, rows.s0(h) + o);
    add_row(sums.kept, sums.st, sums.centre, sums.s0, rows.st(h) + o);
  }
}

// Prompts first + o .. first + o + lanes - 1.
template <bool softmax>
void sum_vector(const WhiteTokens& law, std::int64_t L, const Stream& tokens, Index first,
                std::size_t o, HeadBuffers& buffers, HeadRows& rows) {
  const DF32 df;
  const std::size_t lanes = buffers.lanes;
  const auto D = static_cast<std::size_t>(rows.dim()) + 1;
  const auto H = static_cast<std::size_t>(rows.heads());
  const double unit = softmax ? 1.4426950408889634 : 1.0;  // scores in base 2
  round_rows(rows.tilt(0, 0) + o, unit, H * D, lanes, buffers.tilts);
  round_rows(rows.read(0, 0) + o, 1, H * D, lanes, buffers.reads);
  for (std::size_t h = 0; h < H; ++h) {
    hn::Store(hn::Set(df, -1e30F), df, buffers.tops + h * lanes);
  }
  const auto K = static_cast<std::size_t>(law.components);
  if (K > 1) round_rows(law.below + o, 1, K - 1, lanes, buffers.below);
  Sfc32 state = start_prompts(tokens, first, o);
  const std::int64_t most = tokens_per_block(rows.dim());
  for (std::int64_t left = L; left > 0; left -= most) {
    const auto now = static_cast<std::size_t>(std::min(left, most));
    next_white(law, state, now, D, buffers.below, buffers.u, buffers.work);
    const TokenBlock block{.u = buffers.u,
                           .tokens = now,
                           .D = D,
                           .weights = buffers.weights,
                           .values = buffers.values};
    for (Index h = 0; h < rows.heads(); ++h) add_head<softmax>(block, h, o, buffers, rows);
  }
  divide(softmax, L, o, buffers.lanes, rows);
}

void sum_lanes(const WhiteTokens& law, bool softmax, std::int64_t L, const Stream& tokens,
               Index first, Index count, HeadRows& rows) {
  HeadBuffers buffers(static_cast<std::size_t>(rows.heads()),
                      static_cast<std::size_t>(rows.dim() + 1),
                      static_cast<std::size_t>(tokens_per_block(rows.dim())));
  for (std::size_t o = 0; o < static_cast<std::size_t>(count); o += buffers.lanes) {
    const auto sum = softmax ? sum_vector<true> : sum_vector<false>;
    sum(law, L, tokens, first, o, buffers, rows);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {

HWY_EXPORT(sum_lanes);

// In place of std::fill_n, which stores one number at a time.
void HeadRows::set_to_zero(Index first, Index rows) {
  std::memset(row(first), 0, static_cast<std::size_t>(rows * kTrainLanes) * sizeof(double));
}

HeadRows::HeadRows(Index d, Index heads)
    : d_(d),
      heads_(heads),
      memory_(static_cast<std::size_t>(count(d, heads) * kTrainLanes) * sizeof(double)) {
  set_to_zero(0, count(d, heads));
}

void head_sums(const WhiteTokens& law, ModelKind kind, std::int64_t L, const Stream& tokens,
               Index first, Index count, HeadRows& rows) {
  ESSCHER_DISPATCH(sum_lanes)(law, kind == ModelKind::softmax, L, tokens, first, count, rows);
}

}  // namespace esscher
#endif
