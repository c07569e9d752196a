// 2^y in float for SIMD bodies: 2^n P(y - n) with a minimax polynomial P of degree 5, relative
// error 7e-8.
//
// It is for weights whose range the caller knows: -125 <= y <= 54. Then the exponent stays in
// range, and adding 1.5 2^23 rounds y to n and leaves n in the low bits. exp-inl.h serves every
// other argument.
#if defined(ESSCHER_SIMD_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESSCHER_SIMD_EXP2_INL_H_
#undef ESSCHER_SIMD_EXP2_INL_H_
#else
#define ESSCHER_SIMD_EXP2_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kLowestExp2 = -125.0F;

HWY_INLINE hn::Vec<hn::ScalableTag<float>> exp2_in_range(hn::Vec<hn::ScalableTag<float>> y) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<std::int32_t> di;
  const auto magic = hn::Set(d, 12582912.0F);
  const auto rounded = hn::Add(y, magic);
  const auto f = hn::Sub(y, hn::Sub(rounded, magic));
  auto p = hn::Set(d, 0.0013276472454890609F);
  p = hn::MulAdd(p, f, hn::Set(d, 0.009675541892647743F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.05550713092088699F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.24022120237350464F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.6931469440460205F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, rounded))));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
