// Long sequences of float normals, one per 32-bit lane, for loops that read every token of
// a prompt once and in order. One Philox block of a Stream (128 bits) is the state (a, b, c, n)
// with which the generator sfc32 starts (C. Doty-Humphrey, PractRand; NumPy's SFC64 is its 64-bit
// form):
//
//   out = a + b + n,  n += 1,  a = b ^ b>>9,  b = c + (c<<3),  c = rotl(c, 21) + out
//
// The step is a bijection and the first state is uniform, so every later state is uniform and no
// warming up is needed. The counter n makes the period at least 2^32 words. A sequence is a pure
// function of (seed, stream, block). A word takes 10 instructions per vector, against 42 for
// Philox. Included once per Highway target.
//
// Two words r and t give two normals rho (cos phi -+ sin phi), as in stream.h, with
//
//   rho^2 = -log u,   u = (m + (t mod 256 + 1/2)/256) 2^-30,   m = the 30 middle bits of r
//   phi   = pi/4 y,   y = (t as int32) 2^-31
//   signs: the top bit of r for the first normal, the lowest bit of r for the second
//
// |x| <= 7.36, the absolute error is below 2e-6, and radii below 0.03 lie on a grid, as for
// Stream::normal32. Multiply-adds are fused where the target can fuse them, so the last bits depend
// on the target, as those of any sum over tokens do.
#if defined(ESSCHER_RANDOM_SFC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESSCHER_RANDOM_SFC_INL_H_
#undef ESSCHER_RANDOM_SFC_INL_H_
#else
#define ESSCHER_RANDOM_SFC_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "esscher/random/normal-inl.h"
#include "esscher/random/stream.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

struct Sfc32 {
  VU32 a, b, c, n;

  HWY_INLINE VU32 next() {
    const VU32 out = hn::Add(hn::Add(a, b), n);
    n = hn::Add(n, hn::Set(DU32(), 1));
    a = hn::Xor(b, hn::ShiftRight<9>(b));
    b = hn::Add(c, hn::ShiftLeft<3>(c));
    c = hn::Add(hn::Or(hn::ShiftLeft<21>(c), hn::ShiftRight<11>(c)), out);
    return out;
  }
};

// The sequences that begin with first_block[0 .. lanes-1]. The array has one element more, because
// it is read in pairs.
HWY_INLINE Sfc32 start_sequences(const Stream& stream, const std::uint64_t* first_block) {
  const DU64 d64;
  HWY_ALIGN_MAX std::uint64_t even[hn::MaxLanes(DU64())];
  HWY_ALIGN_MAX std::uint64_t odd[hn::MaxLanes(DU64())];
  for (std::size_t j = 0; j < hn::Lanes(d64); ++j) {
    even[j] = first_block[2 * j];
    odd[j] = first_block[2 * j + 1];
  }
  Words a;
  Words b;
  philox_words(hn::Load(d64, even), hn::Load(d64, odd), hn::Set(d64, stream.id()),
               RoundKeys(stream.seed()), a, b);
  return {interleave_words(a.x0, b.x0), interleave_words(a.x1, b.x1), interleave_words(a.x2, b.x2),
          interleave_words(a.x3, b.x3)};
}

// u of the formula above, 0 < u <= 1, as the sum of (m - 1) 2^-30 and of 2^-30 (1 + ..), a float
// whose top mantissa bits are the eight bits of t.
HWY_INLINE VF32 open_unit(VU32 r, VU32 t) {
  const DF32 d;
  const DU32 d32;
  const hn::ScalableTag<std::int32_t> di;
  const VU32 m = hn::And(r, hn::Set(d32, 0x7FFFFFFEU));
  const VF32 coarse = hn::ConvertTo(d, hn::Sub(hn::BitCast(di, m), hn::Set(di, 2)));
  const VU32 eight = hn::And(hn::ShiftLeft<15>(t), hn::Set(d32, 0x7F8000U));
  const VF32 fine = hn::BitCast(d, hn::Or(eight, hn::Set(d32, 0x30804000U)));  // 2^-30 (1 + 1/512)
  return hn::MulAdd(coarse, hn::Set(d, 0x1p-31F), fine);
}

// -log u for 0 < u <= 1, where u = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2).
HWY_INLINE VF32 minus_log(VF32 u) {
  using namespace normal_float;
  const DF32 d;
  const DU32 d32;
  const hn::ScalableTag<std::int32_t> di;
  const auto c = [&](int j) HWY_ATTR { return hn::Set(d, -kLog[j]); };
  const VU32 bits = hn::BitCast(d32, u);
  const VU32 exponent =  // k 2^23
      hn::And(hn::Sub(bits, hn::Set(d32, kSqrtHalf)), hn::Set(d32, ~kMantissa));
  const VF32 f = hn::Sub(hn::BitCast(d, hn::Sub(bits, exponent)), hn::Set(d, 1.0F));
  const VF32 f2 = hn::Mul(f, f);  // coefficients in pairs need fewer dependent steps
  VF32 p = hn::MulAdd(c(7), f, c(6));
  p = hn::MulAdd(p, f2, hn::MulAdd(c(5), f, c(4)));
  p = hn::MulAdd(p, f2, hn::MulAdd(c(3), f, c(2)));
  p = hn::MulAdd(p, f2, hn::MulAdd(c(1), f, c(0)));
  const VF32 k = hn::ConvertTo(d, hn::BitCast(di, exponent));
  return hn::NegMulAdd(k, hn::Set(d, kLn2 * 0x1p-23F), hn::Mul(p, f));
}

HWY_INLINE void turn(VF32 rho_squared, VU32 r, VU32 t, VF32& first, VF32& second) {
  using namespace normal_float;
  const DF32 d;
  const DU32 d32;
  const hn::ScalableTag<std::int32_t> di;
  const VF32 rho = hn::Sqrt(rho_squared);
  const VF32 y = hn::Mul(hn::ConvertTo(d, hn::BitCast(di, t)), hn::Set(d, 0x1p-31F));
  const VF32 z = hn::Mul(y, y);
  VF32 sine = hn::Set(d, kSin[3]);
  VF32 cosine = hn::Set(d, kCos[3]);
  HWY_UNROLL(3)
  for (int j = 2; j >= 0; --j) {
    sine = hn::MulAdd(sine, z, hn::Set(d, kSin[j]));
    cosine = hn::MulAdd(cosine, z, hn::Set(d, kCos[j]));
  }
  const VU32 top = hn::And(r, hn::Set(d32, std::uint32_t{1} << 31));
  first = hn::Xor(hn::Mul(rho, hn::NegMulAdd(y, sine, cosine)), hn::BitCast(d, top));
  second = hn::Xor(hn::Mul(rho, hn::MulAdd(y, sine, cosine)), hn::BitCast(d, hn::ShiftLeft<31>(r)));
}

// Vectors of AVX-512: 32 registers hold every constant, and stores of such vectors are slow.
constexpr bool kWideNormals = hn::MaxLanes(DF32()) == 16;

HWY_INLINE void next_normals_at_once(Sfc32& state, std::size_t pairs, float* normals) {
  const DF32 d;
  const std::size_t lanes = hn::Lanes(d);
  Sfc32 now = state;
  for (std::size_t i = 0; i < pairs; ++i) {
    const VU32 r = now.next();
    const VU32 t = now.next();
    VF32 first;
    VF32 second;
    turn(minus_log(open_unit(r, t)), r, t, first, second);
    hn::Store(first, d, normals + 2 * i * lanes);
    hn::Store(second, d, normals + (2 * i + 1) * lanes);
  }
  state = now;
}

// With 16 registers there are three loops instead of one. From words to normals a body would take 80
// cycles of dependent steps and more constants than registers, and too few such bodies fit into the
// window in which a CPU overlaps them.
HWY_INLINE void next_normals_in_steps(Sfc32& state, std::size_t pairs, float* normals,
                                      float* work) {
  const DF32 d;
  const DU32 d32;
  const std::size_t lanes = hn::Lanes(d);
  Sfc32 now = state;
  for (std::size_t i = 0; i < pairs; ++i) {
    const VU32 r = now.next();
    const VU32 t = now.next();
    hn::Store(hn::BitCast(d, r), d, normals + 2 * i * lanes);
    hn::Store(hn::BitCast(d, t), d, normals + (2 * i + 1) * lanes);
    hn::Store(open_unit(r, t), d, work + i * lanes);
  }
  state = now;
  for (std::size_t i = 0; i < pairs; ++i) {
    hn::Store(minus_log(hn::Load(d, work + i * lanes)), d, work + i * lanes);
  }
  for (std::size_t i = 0; i < pairs; ++i) {
    float* pair = normals + 2 * i * lanes;
    VF32 first;
    VF32 second;
    turn(hn::Load(d, work + i * lanes), hn::BitCast(d32, hn::Load(d, pair)),
         hn::BitCast(d32, hn::Load(d, pair + lanes)), first, second);
    hn::Store(first, d, pair);
    hn::Store(second, d, pair + lanes);
  }
}

// The next `pairs` pairs of normals of every lane: normals [2 pairs, lanes], work [pairs, lanes].
// Both ways have the same bits. One loop is 1.1 times faster than three on AVX-512, and 1.05 times
// slower on AVX2, on a Zen 4 processor.
HWY_INLINE void next_normals(Sfc32& state, std::size_t pairs, float* normals, float* work) {
  if constexpr (kWideNormals) {
    next_normals_at_once(state, pairs, normals);
  } else {
    next_normals_in_steps(state, pairs, normals, work);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
