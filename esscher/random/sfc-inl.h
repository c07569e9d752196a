// Long runs of float normals, one run per 32-bit lane, for loops that read every token of a prompt
// once and in order. The block of a Stream (Philox, 128 bits) is the whole state of a run, which
// sfc32 (C. Doty-Humphrey, PractRand; 64-bit form: NumPy's SFC64) carries on:
//
//   out = a + b + n,  n += 1,  a = b ^ b>>9,  b = c + (c<<3),  c = rotl(c, 21) + out
//
// A bijection of a state that is uniform stays uniform, so no warming up is needed; the counter n
// makes the period at least 2^32 words. A run is a pure function of (seed, stream, block), and a
// word takes 10 instructions per vector against 42 for Philox. Included once per Highway target.
//
// Normals from two words r, t: rho (cos phi -+ sin phi) as in stream.h, with
//   sign of the first: top bit of r         u = ((r mod 2^31) + (t mod 256 + 1/2)/256) 2^-31
//   sign of the second: top bit of t        phi = pi/4 y,  y = (2t as int32) 2^-31
// |x| <= 7.45, absolute error < 2e-6, radii below 0.03 on a grid, as Stream::normal32. Fused where
// the target can: the last bits depend on it, as those of any sum over tokens do.
#if defined(ESSCHER_RANDOM_SFC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESSCHER_RANDOM_SFC_INL_H_
#undef ESSCHER_RANDOM_SFC_INL_H_
#else
#define ESSCHER_RANDOM_SFC_INL_H_
#endif

#include <cstdint>

#include "esscher/random/normal-inl.h"

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

// -log u for 0 < u <= 1.
HWY_INLINE VF32 minus_log(VF32 u) {
  using namespace normal_float;
  const DF32 d;
  const DU32 d32;
  const hn::ScalableTag<std::int32_t> di;
  const auto c = [&](int j) HWY_ATTR { return hn::Set(d, kLog[j]); };
  const VU32 x = hn::Add(hn::BitCast(d32, u), hn::Set(d32, kOne - kSqrtHalf));
  const VF32 k =
      hn::ConvertTo(d, hn::Sub(hn::BitCast(di, hn::ShiftRight<23>(x)), hn::Set(di, 127)));
  const VU32 mantissa = hn::Add(hn::And(x, hn::Set(d32, kMantissa)), hn::Set(d32, kSqrtHalf));
  const VF32 f = hn::Sub(hn::BitCast(d, mantissa), hn::Set(d, 1.0F));
  const VF32 f2 = hn::Mul(f, f);  // pairs of coefficients: a shorter chain than one by one
  VF32 p = hn::MulAdd(c(7), f, c(6));
  p = hn::MulAdd(p, f2, hn::MulAdd(c(5), f, c(4)));
  p = hn::MulAdd(p, f2, hn::MulAdd(c(3), f, c(2)));
  p = hn::MulAdd(p, f2, hn::MulAdd(c(1), f, c(0)));
  return hn::NegMulAdd(k, hn::Set(d, kLn2), hn::Mul(p, hn::Neg(f)));
}

HWY_INLINE void normal_pair(VU32 r, VU32 t, VF32& first, VF32& second) {
  using namespace normal_float;
  const DF32 d;
  const DU32 d32;
  const hn::ScalableTag<std::int32_t> di;
  const VU32 sign = hn::Set(d32, std::uint32_t{1} << 31);
  // coarse - 1, and 1 + fine read as a float: the eight bits become the top of its mantissa.
  const VF32 coarse =
      hn::ConvertTo(d, hn::Sub(hn::BitCast(di, hn::AndNot(sign, r)), hn::Set(di, 1)));
  const VU32 eight = hn::And(hn::ShiftLeft<15>(t), hn::Set(d32, 0x7F8000U));
  const VF32 fine = hn::BitCast(d, hn::Or(eight, hn::Set(d32, 0x30004000U)));  // 2^-31 (1 + 1/512)
  const VF32 rho = hn::Sqrt(minus_log(hn::MulAdd(coarse, hn::Set(d, 0x1p-31F), fine)));
  const VF32 y =
      hn::Mul(hn::ConvertTo(d, hn::BitCast(di, hn::ShiftLeft<1>(t))), hn::Set(d, 0x1p-31F));
  const VF32 z = hn::Mul(y, y);
  VF32 sine = hn::Set(d, kSin[3]);
  VF32 cosine = hn::Set(d, kCos[3]);
  HWY_UNROLL(3)
  for (int j = 2; j >= 0; --j) {
    sine = hn::MulAdd(sine, z, hn::Set(d, kSin[j]));
    cosine = hn::MulAdd(cosine, z, hn::Set(d, kCos[j]));
  }
  first = hn::Xor(hn::Mul(rho, hn::NegMulAdd(y, sine, cosine)), hn::BitCast(d, hn::And(r, sign)));
  second = hn::Xor(hn::Mul(rho, hn::MulAdd(y, sine, cosine)), hn::BitCast(d, hn::And(t, sign)));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
