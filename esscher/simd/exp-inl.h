// Vector exponential for SIMD bodies. Its contract and accuracy are stated in exp.h.
//
//   x = n ln2 + r,  |r| <= ln2/2,  e^x = 2^n e^r
//
// Adding 1.5*2^23 (float) or 1.5*2^52 (double) rounds x/ln2 to n and leaves n + exponent bias in
// the low mantissa bits, so that one shift makes 2^n. ln2 is split into two parts so that n times
// the high part is exact without FMA. e^r is 1 + r + r^2 p(r), with a polynomial p that is minimax
// in relative error: 3.1e-9 at degree 6 (float), 3.7e-18 at degree 11 (double).

#if defined(ESSCHER_SIMD_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESSCHER_SIMD_EXP_INL_H_
#undef ESSCHER_SIMD_EXP_INL_H_
#else
#define ESSCHER_SIMD_EXP_INL_H_
#endif

#include <limits>
#include <type_traits>

#include "esscher/simd/exp.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, std::enable_if_t<sizeof(hn::TFromD<D>) == 4>* = nullptr>
HWY_INLINE hn::Vec<D> exp_core(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  const auto magic = hn::Set(d, 12582912.0f + 127.0f);
  const auto t = hn::MulAdd(x, hn::Set(d, 1.44269504088896341f), magic);
  const auto scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, t)));
  const auto n = hn::Sub(t, magic);
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  auto p = hn::Set(d, 0.00138143206997f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.00836885106767f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0416684010813f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.166665195241f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.499999933731f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  return hn::Mul(p, scale);
}

template <class D, std::enable_if_t<sizeof(hn::TFromD<D>) == 8>* = nullptr>
HWY_INLINE hn::Vec<D> exp_core(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  const auto magic = hn::Set(d, 6755399441055744.0 + 1023.0);
  const auto t = hn::MulAdd(x, hn::Set(d, 1.44269504088896340736), magic);
  const auto scale = hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(di, t)));
  const auto n = hn::Sub(t, magic);
  auto r = hn::NegMulAdd(n, hn::Set(d, 6.93147180369123816490e-1), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.90821492927058770002e-10), r);
  auto p = hn::Set(d, 2.4999858270472850371e-8);
  p = hn::MulAdd(p, r, hn::Set(d, 2.7630523467353601672e-7));
  p = hn::MulAdd(p, r, hn::Set(d, 2.7557588421289219252e-6));
  p = hn::MulAdd(p, r, hn::Set(d, 2.4801492388293635494e-5));
  p = hn::MulAdd(p, r, hn::Set(d, 1.9841269502740906344e-4));
  p = hn::MulAdd(p, r, hn::Set(d, 1.3888888944249186531e-3));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3333333334969236579e-3));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1666666666528103793e-2));
  p = hn::MulAdd(p, r, hn::Set(d, 1.666666666666640767e-1));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000000000000108261e-1));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0));
  return hn::Mul(p, scale);
}

// e^x for x <= 0, which is the exponent of a softmax after its maximum was subtracted, so it never
// overflows. The comparison is written so that NaN passes through.
template <class D>
HWY_INLINE hn::Vec<D> exp_of_nonpositive(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, simd::exp_contract<T>().lowest)), exp_core(d, x));
}

// e^x for every x.
template <class D>
HWY_INLINE hn::Vec<D> exp_everywhere(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, simd::exp_contract<T>().highest)),
                        hn::Set(d, std::numeric_limits<T>::infinity()), exp_of_nonpositive(d, x));
}

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
