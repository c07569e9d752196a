// SIMD bodies of the generators of stream.h. They do the same operations in the same order as the
// scalar form in stream.cc and hence give the same bits. Included once per Highway target.
#if defined(ESSCHER_RANDOM_NORMAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESSCHER_RANDOM_NORMAL_INL_H_
#undef ESSCHER_RANDOM_NORMAL_INL_H_
#else
#define ESSCHER_RANDOM_NORMAL_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "esscher/random/constants.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DU64 = hn::ScalableTag<std::uint64_t>;
using DU32 = hn::ScalableTag<std::uint32_t>;
using DF64 = hn::ScalableTag<double>;
using DF32 = hn::ScalableTag<float>;
using VU64 = hn::Vec<DU64>;
using VU32 = hn::Vec<DU32>;
using VF64 = hn::Vec<DF64>;
using VF32 = hn::Vec<DF32>;

// One Philox block per 64-bit lane; only the low 32 bits of each word are meaningful.
struct Words {
  VU64 x0, x1, x2, x3;
};

// The round keys of a seed, broadcast once, so that a loop reads them as memory operands.
struct RoundKeys {
  explicit RoundKeys(std::uint64_t seed) {
    auto key0 = static_cast<std::uint32_t>(seed);
    auto key1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < philox::kRounds; ++round) {
      for (std::size_t lane = 0; lane < kMaxLanes; ++lane) {
        key[2 * round][lane] = key0;
        key[2 * round + 1][lane] = key1;
      }
      key0 += philox::kWeyl0;
      key1 += philox::kWeyl1;
    }
  }
  static constexpr std::size_t kMaxLanes = hn::MaxLanes(DU64());
  HWY_ALIGN_MAX std::uint64_t key[2 * philox::kRounds][kMaxLanes];
};

// One round. The counter is (index, id) in each lane. A 32x32->64 product reads low halves only, so
// the high halves may hold anything and no masking is needed between rounds.
HWY_INLINE void philox_round(Words& x, VU64 key0, VU64 key1) {
  const DU64 d64;
  const DU32 d32;
  const VU32 m0 = hn::BitCast(d32, hn::Set(d64, philox::kMultiplier0));
  const VU32 m1 = hn::BitCast(d32, hn::Set(d64, philox::kMultiplier1));
  const VU64 p0 = hn::MulEven(hn::BitCast(d32, x.x0), m0);
  const VU64 p1 = hn::MulEven(hn::BitCast(d32, x.x2), m1);
  x.x0 = hn::Xor(hn::ShiftRight<32>(p1), hn::Xor(x.x1, key0));
  x.x1 = p1;
  x.x2 = hn::Xor(hn::ShiftRight<32>(p0), hn::Xor(x.x3, key1));
  x.x3 = p0;
}

HWY_INLINE Words philox_words(VU64 index, VU64 id, const RoundKeys& keys) {
  const DU64 d64;
  Words x{index, hn::ShiftRight<32>(index), id, hn::ShiftRight<32>(id)};
  HWY_UNROLL(10)
  for (int round = 0; round < philox::kRounds; ++round) {
    philox_round(x, hn::Load(d64, keys.key[2 * round]), hn::Load(d64, keys.key[2 * round + 1]));
  }
  return x;
}

// Two vectors of blocks, whose rounds alternate, so that the CPU works on one while it waits for
// the other.
HWY_INLINE void philox_words(VU64 index_a, VU64 index_b, VU64 id, const RoundKeys& keys, Words& a,
                             Words& b) {
  const DU64 d64;
  a = {index_a, hn::ShiftRight<32>(index_a), id, hn::ShiftRight<32>(id)};
  b = {index_b, hn::ShiftRight<32>(index_b), id, hn::ShiftRight<32>(id)};
  HWY_UNROLL(10)
  for (int round = 0; round < philox::kRounds; ++round) {
    const VU64 key0 = hn::Load(d64, keys.key[2 * round]);
    const VU64 key1 = hn::Load(d64, keys.key[2 * round + 1]);
    philox_round(a, key0, key1);
    philox_round(b, key0, key1);
  }
}

HWY_INLINE VU64 join(VU64 lo, VU64 hi) {
  return hn::Or(hn::And(lo, hn::Set(DU64(), 0xFFFFFFFFULL)), hn::ShiftLeft<32>(hi));
}

// Integers below 2^52 as doubles, exactly.
HWY_INLINE VF64 small_to_double(VU64 x) {
  const DF64 d;
  const VU64 magic = hn::Set(DU64(), normal_double::kTwo52);
  return hn::Sub(hn::BitCast(d, hn::Or(x, magic)), hn::Set(d, 0x1p52));
}

HWY_INLINE VF64 uniform_double(VU64 bits) {
  const DF64 d;
  return hn::Mul(hn::Add(small_to_double(hn::ShiftRight<12>(bits)), hn::Set(d, 0.5)),
                 hn::Set(d, 0x1p-52));
}

// a + b c, always as two roundings. A fused multiply-add, which only some targets have, would give
// other bits.
template <class V>
HWY_INLINE V plus_times(V a, V b, V c) {
  return hn::Add(a, hn::Mul(b, c));
}

HWY_INLINE VF64 log_double(VF64 u) {
  using namespace normal_double;
  const DF64 d;
  const DU64 d64;
  const VU64 x = hn::Add(hn::BitCast(d64, u), hn::Set(d64, kOne - kSqrtHalf));
  const VF64 k = hn::Sub(small_to_double(hn::ShiftRight<52>(x)), hn::Set(d, 1023.0));
  const VU64 mantissa = hn::Add(hn::And(x, hn::Set(d64, kMantissa)), hn::Set(d64, kSqrtHalf));
  const VF64 f = hn::Sub(hn::BitCast(d, mantissa), hn::Set(d, 1.0));
  const VF64 half_square = hn::Mul(hn::Mul(hn::Set(d, 0.5), f), f);
  const VF64 s = hn::Div(f, hn::Add(hn::Set(d, 2.0), f));
  const VF64 z = hn::Mul(s, s);
  const VF64 w = hn::Mul(z, z);
  const auto c = [&](int j) HWY_ATTR { return hn::Set(d, kLog[j]); };
  const VF64 even = hn::Mul(w, plus_times(c(1), w, plus_times(c(3), w, c(5))));
  const VF64 odd = hn::Mul(z, plus_times(c(0), w, plus_times(c(2), w, plus_times(c(4), w, c(6)))));
  const VF64 main = hn::Mul(s, hn::Add(half_square, hn::Add(odd, even)));
  const VF64 rest = hn::Sub(hn::Add(main, hn::Mul(k, hn::Set(d, kLn2Low))), half_square);
  return hn::Add(hn::Add(rest, f), hn::Mul(k, hn::Set(d, kLn2High)));
}

// Two independent standard normals per lane from 128 bits per lane.
HWY_INLINE void normal_pair(VU64 radius, VU64 angle, VF64& even, VF64& odd) {
  using namespace normal_double;
  const DF64 d;
  const DU64 d64;
  const VF64 rho = hn::Sqrt(hn::Neg(log_double(uniform_double(radius))));
  const VF64 step = small_to_double(hn::And(angle, hn::Set(d64, kMantissa)));
  const VF64 y = hn::Mul(hn::Sub(step, hn::Set(d, 0x1p51 - 0.5)), hn::Set(d, 0x1p-51));
  const VF64 x = hn::Mul(y, hn::Set(d, kQuarterPi));
  const VF64 z = hn::Mul(x, x);
  VF64 sine = hn::Set(d, kSin[5]);
  VF64 cosine = hn::Set(d, kCos[5]);
  for (int j = 4; j >= 0; --j) {
    sine = plus_times(hn::Set(d, kSin[j]), z, sine);
    cosine = plus_times(hn::Set(d, kCos[j]), z, cosine);
  }
  sine = hn::Add(x, hn::Mul(hn::Mul(x, z), sine));
  const VF64 half = hn::Mul(hn::Set(d, 0.5), z);
  cosine = hn::Sub(hn::Set(d, 1.0), hn::Sub(half, hn::Mul(hn::Mul(z, z), cosine)));
  const VU64 sign = hn::Set(d64, std::uint64_t{1} << 63);
  even = hn::Xor(hn::Mul(rho, hn::Sub(cosine, sine)), hn::BitCast(d, hn::And(angle, sign)));
  odd = hn::Xor(hn::Mul(rho, hn::Add(cosine, sine)),
                hn::BitCast(d, hn::And(hn::ShiftLeft<1>(angle), sign)));
}

// Two vectors that go through the same operations in turn, so that the CPU works on one while it
// waits for the other. on_both(f, x, ..) applies f to the first vectors and to the second ones.
template <class V>
struct VectorPair {
  V a, b;
};
template <class F, class V, class... More>
HWY_INLINE auto on_both(const F& f, const VectorPair<V>& x, const VectorPair<More>&... more) {
  return VectorPair<decltype(f(x.a, more.a...))>{f(x.a, more.a...), f(x.b, more.b...)};
}

HWY_INLINE VectorPair<VF32> log_float(const VectorPair<VF32>& u) {
  using namespace normal_float;
  const DF32 d;
  const DU32 d32;
  const hn::ScalableTag<std::int32_t> di;
  const auto x = on_both(
      [&](VF32 v) HWY_ATTR { return hn::Add(hn::BitCast(d32, v), hn::Set(d32, kOne - kSqrtHalf)); },
      u);
  const auto k = on_both(
      [&](VU32 v) HWY_ATTR {
        return hn::ConvertTo(d, hn::Sub(hn::BitCast(di, hn::ShiftRight<23>(v)), hn::Set(di, 127)));
      },
      x);
  const auto f = on_both(
      [&](VU32 v) HWY_ATTR {
        const VU32 m = hn::Add(hn::And(v, hn::Set(d32, kMantissa)), hn::Set(d32, kSqrtHalf));
        return hn::Sub(hn::BitCast(d, m), hn::Set(d, 1.0F));
      },
      x);
  VectorPair<VF32> p{hn::Set(d, kLog[7]), hn::Set(d, kLog[7])};
  HWY_UNROLL(7)
  for (int j = 6; j >= 0; --j) {
    const VF32 c = hn::Set(d, kLog[j]);
    p = on_both([&](VF32 v, VF32 w) HWY_ATTR { return plus_times(c, v, w); }, p, f);
  }
  return on_both([&](VF32 v, VF32 w, VF32 e)
                     HWY_ATTR { return hn::Add(hn::Mul(e, hn::Set(d, kLn2)), hn::Mul(w, v)); },
                 p, f, k);
}

// Two independent standard normals per 32-bit lane from two words per lane, for two vectors.
HWY_INLINE void normal_pair(const VectorPair<VU32>& first, const VectorPair<VU32>& second,
                            VectorPair<VF32>& even, VectorPair<VF32>& odd) {
  using namespace normal_float;
  const DF32 d;
  const DU32 d32;
  const hn::ScalableTag<std::int32_t> di;
  const auto u = on_both(
      [&](VU32 v, VU32 w) HWY_ATTR {
        const VF32 coarse = hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<1>(v)));
        const VU32 byte = hn::And(hn::ShiftRight<2>(w), hn::Set(d32, 0xFFU));
        const VF32 fine = plus_times(hn::Set(d, 0x1p-40F), hn::ConvertTo(d, hn::BitCast(di, byte)),
                                     hn::Set(d, 0x1p-39F));
        return hn::Add(hn::Mul(coarse, hn::Set(d, 0x1p-31F)), fine);
      },
      first, second);
  const auto y = on_both(
      [&](VU32 w) HWY_ATTR {
        const VF32 step = hn::ConvertTo(d, hn::ShiftRight<10>(hn::BitCast(di, w)));
        return hn::Mul(hn::Add(step, hn::Set(d, 0.5F)), hn::Set(d, 0x1p-21F));
      },
      second);
  const auto rho = on_both([](VF32 v) HWY_ATTR { return hn::Sqrt(hn::Neg(v)); }, log_float(u));
  const auto z = on_both([](VF32 v) HWY_ATTR { return hn::Mul(v, v); }, y);
  VectorPair<VF32> sine{hn::Set(d, kSin[3]), hn::Set(d, kSin[3])};
  VectorPair<VF32> cosine{hn::Set(d, kCos[3]), hn::Set(d, kCos[3])};
  HWY_UNROLL(3)
  for (int j = 2; j >= 0; --j) {
    const VF32 s = hn::Set(d, kSin[j]);
    const VF32 c = hn::Set(d, kCos[j]);
    sine = on_both([&](VF32 v, VF32 w) HWY_ATTR { return plus_times(s, w, v); }, sine, z);
    cosine = on_both([&](VF32 v, VF32 w) HWY_ATTR { return plus_times(c, w, v); }, cosine, z);
  }
  sine = on_both([](VF32 v, VF32 w) HWY_ATTR { return hn::Mul(v, w); }, y, sine);
  const VU32 sign = hn::Set(d32, std::uint32_t{1} << 31);
  even = on_both(
      [&](VF32 r, VF32 c, VF32 s, VU32 w) HWY_ATTR {
        return hn::Xor(hn::Mul(r, hn::Sub(c, s)),
                       hn::BitCast(d, hn::And(hn::ShiftLeft<30>(w), sign)));
      },
      rho, cosine, sine, second);
  odd = on_both(
      [&](VF32 r, VF32 c, VF32 s, VU32 w) HWY_ATTR {
        return hn::Xor(hn::Mul(r, hn::Add(c, s)),
                       hn::BitCast(d, hn::And(hn::ShiftLeft<31>(w), sign)));
      },
      rho, cosine, sine, second);
}

// Puts one word of each block into the 32-bit lanes: blocks a into even lanes, blocks b into odd
// ones.
HWY_INLINE VU32 interleave_words(VU64 a, VU64 b) {
  const DU32 d32;
  return hn::OddEven(hn::BitCast(d32, hn::ShiftLeft<32>(b)), hn::BitCast(d32, a));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
