#include "esscher/task/token_lanes.h"

#include <algorithm>
#include <cstddef>

#include "esscher/simd/detail/dispatch.h"
#include "hwy/aligned_allocator.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/task/token_lanes.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h, so that each target gets its own body.
#include "esscher/task/token_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

// The first `tokens` tokens of each prompt, D coordinates each, from blocks that `next` fills.
template <class Next>
HWY_INLINE void token_rows(const Next& next, std::size_t D, std::size_t tokens,
                           const Stream& stream, std::span<const std::uint64_t> first_block,
                           double* out) {
  const std::size_t lanes = hn::Lanes(DF32());
  const std::size_t prompts = first_block.size();
  const auto block = static_cast<std::size_t>(tokens_per_block(static_cast<Index>(D) - 1));
  const auto drawn = hwy::AllocateAligned<float>((block * D + 1) * lanes);
  const auto work = hwy::AllocateAligned<float>((2 * block * D + 2) * lanes);
  std::uint64_t first[hn::MaxLanes(DF32()) + 1] = {};  // one more: start_sequences reads pairs
  for (std::size_t j = 0; j < prompts; j += lanes) {
    const std::size_t wanted = std::min(lanes, prompts - j);
    std::copy_n(first_block.begin() + static_cast<std::ptrdiff_t>(j), wanted, first);
    Sfc32 state = start_sequences(stream, first);
    for (std::size_t l = 0; l < tokens; l += block) {
      const std::size_t now = std::min(block, tokens - l);
      next(state, now, drawn.get(), work.get());
      for (std::size_t i = 0; i < now * D; ++i) {
        std::copy_n(drawn.get() + i * lanes, wanted, out + (l * D + i) * prompts + j);
      }
    }
  }
}

void regression_rows(Features features, std::size_t d, std::size_t tokens, const Stream& stream,
                     std::span<const std::uint64_t> first_block, double* out) {
  const auto next = [&](Sfc32& state, std::size_t now, float* to, float* work)
                        HWY_ATTR { next_tokens(features, state, now, d, to, work); };
  token_rows(next, d + 1, tokens, stream, first_block, out);
}

void mixture_rows(std::size_t d, std::span<const double> below, std::size_t tokens,
                  const Stream& stream, std::span<const std::uint64_t> first_block, double* out) {
  const std::size_t lanes = hn::Lanes(DF32()), K = below.size() + 1;
  const auto rows = hwy::AllocateAligned<float>(K * lanes);
  for (std::size_t k = 0; k + 1 < K; ++k) {
    std::fill_n(rows.get() + k * lanes, lanes, static_cast<float>(below[k]));
  }
  const auto next = [&](Sfc32& state, std::size_t now, float* to, float* work)
                        HWY_ATTR { next_mixture(state, now, d, K, rows.get(), to, work); };
  token_rows(next, d + K, tokens, stream, first_block, out);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {

HWY_EXPORT(regression_rows);
HWY_EXPORT(mixture_rows);

void fill_token_lanes(Features features, Index d, Index tokens, const Stream& stream,
                      std::span<const std::uint64_t> first_block, std::span<double> out) {
  if (first_block.empty()) return;
  ESSCHER_DISPATCH(regression_rows)
  (features, static_cast<std::size_t>(d), static_cast<std::size_t>(tokens), stream, first_block,
   out.data());
}

void fill_mixture_lanes(Index d, std::span<const double> below, Index tokens, const Stream& stream,
                        std::span<const std::uint64_t> first_block, std::span<double> out) {
  if (first_block.empty()) return;
  ESSCHER_DISPATCH(mixture_rows)
  (static_cast<std::size_t>(d), below, static_cast<std::size_t>(tokens), stream, first_block,
   out.data());
}

}  // namespace esscher
#endif
