// Blocks of white tokens, one prompt per 32-bit lane, as head_sums.cc and head_visits.cc read them.
// Included once per Highway target.
#if defined(ESSCHER_RISK_HEAD_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESSCHER_RISK_HEAD_BLOCK_INL_H_
#undef ESSCHER_RISK_HEAD_BLOCK_INL_H_
#else
#define ESSCHER_RISK_HEAD_BLOCK_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "esscher/risk/detail/head_lanes.h"
#include "esscher/task/token_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

// Rounds rows of doubles, times `unit`, to rows of floats.
HWY_INLINE void round_rows(const double* from, double unit, std::size_t count, std::size_t lanes,
                           float* to) {
  const DF64 d;
  const hn::Rebind<float, DF64> half;
  const VF64 scale = hn::Set(d, unit);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < lanes; j += hn::Lanes(d)) {
      const VF64 x = hn::Mul(scale, hn::LoadU(d, from + i * kTrainLanes + j));
      hn::StoreU(hn::DemoteTo(half, x), half, to + i * lanes + j);
    }
  }
}

// The sequences of prompts first + o .. first + o + lanes - 1.
HWY_INLINE Sfc32 start_prompts(const Stream& tokens, Index first, std::size_t o) {
  std::uint64_t first_block[hn::MaxLanes(DF32()) + 1] = {};  // start_sequences reads pairs
  for (std::size_t j = 0; j < hn::Lanes(DF32()); ++j) {
    first_block[j] = static_cast<std::uint64_t>(first) + o + j;
  }
  return start_sequences(tokens, first_block);
}

// The next `tokens` tokens of the law, D coordinates each: out [tokens * D + 1, lanes], work [2
// tokens * D + 2, lanes], below [components - 1, lanes].
HWY_INLINE void next_white(const WhiteTokens& law, Sfc32& state, std::size_t tokens, std::size_t D,
                           const float* below, float* out, float* work) {
  const auto K = static_cast<std::size_t>(law.components);
  if (K > 0) {
    next_mixture(state, tokens, D - K, K, below, out, work);
  } else {
    next_tokens(law.features, state, tokens, D - 1, out, work);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
