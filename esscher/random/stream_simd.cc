// Vectorised Stream::fill_*. Blocks are filled by SIMD code, single ones at the ends by the scalar form.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "esscher/random/stream.h"
#include "esscher/simd/detail/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/random/stream_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h, so that each target gets its own body.
#include "esscher/random/normal-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

// Calls body(done, id, keys) for every `lanes` blocks, as long as that many are left. Returns the
// number of blocks that were filled.
template <class Body>
std::size_t fill_lanes(const Stream& stream, std::size_t blocks, std::size_t lanes,
                       const Body& body) {
  const VU64 id = hn::Set(DU64(), stream.id());
  const RoundKeys keys(stream.seed());
  std::size_t done = 0;
  for (; done + lanes <= blocks; done += lanes) body(done, id, keys);
  return done;
}

// Each of these fills out[0 .. per_block * blocks) for whole vectors of blocks and returns the
// number of blocks that it filled.
std::size_t fill_uniform_blocks(const Stream& stream, std::uint64_t block, std::size_t blocks,
                                double* out) {
  const DF64 d;
  return fill_lanes(stream, blocks, hn::Lanes(d),
                    [&](std::size_t done, VU64 id, const RoundKeys& keys) HWY_ATTR {
                      const Words x = philox_words(hn::Iota(DU64(), block + done), id, keys);
                      hn::StoreInterleaved2(uniform_double(join(x.x0, x.x1)),
                                            uniform_double(join(x.x2, x.x3)), d, out + 2 * done);
                    });
}

std::size_t fill_normal_blocks(const Stream& stream, std::uint64_t block, std::size_t blocks,
                               double* out) {
  const DF64 d;
  return fill_lanes(stream, blocks, hn::Lanes(d),
                    [&](std::size_t done, VU64 id, const RoundKeys& keys) HWY_ATTR {
                      VF64 even;
                      VF64 odd;
                      const Words x = philox_words(hn::Iota(DU64(), block + done), id, keys);
                      normal_pair(join(x.x0, x.x1), join(x.x2, x.x3), even, odd);
                      hn::StoreInterleaved2(even, odd, d, out + 2 * done);
                    });
}

std::size_t fill_normal32_blocks(const Stream& stream, std::uint64_t block, std::size_t blocks,
                                 float* out) {
  const DU64 d64;
  const DF32 d;
  const VU64 twice = hn::ShiftLeft<1>(hn::Iota(d64, 0));
  return fill_lanes(
      stream, blocks, hn::Lanes(d), [&](std::size_t done, VU64 id, const RoundKeys& keys) HWY_ATTR {
        const VU64 first = hn::Add(hn::Set(d64, block + done), twice);
        Words a;
        Words b;
        philox_words(first, hn::Add(first, hn::Set(d64, 1)), id, keys, a, b);
        VectorPair<VF32> even;
        VectorPair<VF32> odd;
        normal_pair({interleave_words(a.x0, b.x0), interleave_words(a.x2, b.x2)},
                    {interleave_words(a.x1, b.x1), interleave_words(a.x3, b.x3)}, even, odd);
        hn::StoreInterleaved4(even.a, odd.a, even.b, odd.b, d, out + 4 * done);
      });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {

HWY_EXPORT(fill_uniform_blocks);
HWY_EXPORT(fill_normal_blocks);
HWY_EXPORT(fill_normal32_blocks);

namespace {

// Blocks that are made at once where fewer than a vector of them are left; at least as many as the
// widest vector has lanes.
constexpr std::size_t kSpareBlocks = 64;

// The scalar form fills up to the next block boundary, `blocks_at` goes on from there. It makes a
// whole vector for the rest if that is more than one block, because short fills are common and a
// vector takes as long as one or two scalars.
template <std::size_t per_block, class T, class One, class Blocks>
void fill(std::uint64_t first, std::span<T> out, const One& one, const Blocks& blocks_at) {
  const std::size_t head =
      std::min<std::size_t>(out.size(), (per_block - first % per_block) % per_block);
  std::size_t j = 0;
  for (; j < head; ++j) out[j] = one(first + j);
  j += per_block * blocks_at((first + j) / per_block, (out.size() - j) / per_block, out.data() + j);
  const std::size_t rest = (out.size() - j + per_block - 1) / per_block;
  if (rest > 1) {
    std::array<T, kSpareBlocks * per_block> spare;
    for (std::size_t blocks = std::bit_ceil(rest); blocks <= kSpareBlocks; blocks *= 2) {
      if (blocks_at((first + j) / per_block, blocks, spare.data()) < rest) continue;
      std::copy_n(spare.begin(), out.size() - j, out.begin() + static_cast<std::ptrdiff_t>(j));
      return;
    }
  }
  for (; j < out.size(); ++j) out[j] = one(first + j);
}

}  // namespace

void Stream::fill_uniform(std::uint64_t first, std::span<double> out) const {
  fill<2>(
      first, out, [&](std::uint64_t i) { return uniform(i); },
      [&](std::uint64_t block, std::size_t blocks, double* to) {
        return ESSCHER_DISPATCH(fill_uniform_blocks)(*this, block, blocks, to);
      });
}

void Stream::fill_normal(std::uint64_t first, std::span<double> out) const {
  fill<2>(
      first, out, [&](std::uint64_t i) { return normal(i); },
      [&](std::uint64_t block, std::size_t blocks, double* to) {
        return ESSCHER_DISPATCH(fill_normal_blocks)(*this, block, blocks, to);
      });
}

void Stream::fill_normal(std::uint64_t first, std::span<float> out) const {
  fill<4>(
      first, out, [&](std::uint64_t i) { return normal32(i); },
      [&](std::uint64_t block, std::size_t blocks, float* to) {
        return ESSCHER_DISPATCH(fill_normal32_blocks)(*this, block, blocks, to);
      });
}

}  // namespace esscher
#endif
