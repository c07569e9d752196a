#include "esscher/random/normal_sequences.h"

#include <algorithm>
#include <cstddef>

#include "esscher/simd/detail/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/random/normal_sequences.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h, so that each target gets its own body.
#include "esscher/random/sfc-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

// Stores the first `wanted` float normals of a vector as doubles.
HWY_INLINE void store_promoted(const float* from, std::size_t wanted, double* to) {
  const DF64 d;
  const hn::Rebind<float, DF64> half;
  if (wanted < hn::Lanes(DF32())) {
    std::copy_n(from, wanted, to);
    return;
  }
  for (std::size_t k = 0; k < wanted; k += hn::Lanes(d)) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, from + k)), d, to + k);
  }
}

void sequences_double(const Stream& stream, std::span<const std::uint64_t> first_block,
                      std::span<double> out) {
  constexpr std::size_t kPairsAtOnce = 16;
  constexpr std::size_t kMaxLanes = hn::MaxLanes(DF32());
  const std::size_t lanes = hn::Lanes(DF32());
  const std::size_t sequences = first_block.size();
  const std::size_t n = out.size() / sequences;
  HWY_ALIGN_MAX float normals[2 * kPairsAtOnce * kMaxLanes];
  HWY_ALIGN_MAX float work[kPairsAtOnce * kMaxLanes];
  std::uint64_t first[kMaxLanes + 1] = {};  // one more: start_sequences reads pairs
  for (std::size_t j = 0; j < sequences; j += lanes) {
    const std::size_t wanted = std::min(lanes, sequences - j);
    std::copy_n(first_block.begin() + static_cast<std::ptrdiff_t>(j), wanted, first);
    Sfc32 state = start_sequences(stream, first);
    for (std::size_t i = 0; i < n; i += 2 * kPairsAtOnce) {
      const std::size_t now = std::min(n - i, 2 * kPairsAtOnce);
      next_normals(state, (now + 1) / 2, normals, work);
      for (std::size_t k = 0; k < now; ++k) {
        store_promoted(normals + k * lanes, wanted, out.data() + (i + k) * sequences + j);
      }
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {

HWY_EXPORT(sequences_double);

void fill_normal_sequences(const Stream& stream, std::span<const std::uint64_t> first_block,
                           std::span<double> out) {
  if (first_block.empty()) return;
  ESSCHER_DISPATCH(sequences_double)(stream, first_block, out);
}

}  // namespace esscher
#endif
