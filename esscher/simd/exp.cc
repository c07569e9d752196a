#include "esscher/simd/exp.h"

#include "esscher/base/error.h"
#include "esscher/simd/detail/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/simd/exp.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h, so that each target gets its own body.
#include "esscher/simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

template <class T>
void exp_values(const T* x, T* y, std::size_t n) {
  const hn::ScalableTag<T> d;
  const std::size_t N = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(exp_everywhere(d, hn::LoadU(d, x + i)), d, y + i);
  HWY_ALIGN T last[hn::MaxLanes(d)] = {};
  for (std::size_t j = i; j < n; ++j) last[j - i] = x[j];
  hn::Store(exp_everywhere(d, hn::Load(d, last)), d, last);
  for (std::size_t j = i; j < n; ++j) y[j] = last[j - i];
}

void exp_float(const float* x, float* y, std::size_t n) { exp_values(x, y, n); }
void exp_double(const double* x, double* y, std::size_t n) { exp_values(x, y, n); }

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher::simd {
namespace {

HWY_EXPORT(exp_float);
HWY_EXPORT(exp_double);

}  // namespace

void exp_array(std::span<const float> x, std::span<float> y) {
  check_dimension("exp_array", "y", static_cast<long>(y.size()), static_cast<long>(x.size()));
  ESSCHER_DISPATCH(exp_float)(x.data(), y.data(), x.size());
}

void exp_array(std::span<const double> x, std::span<double> y) {
  check_dimension("exp_array", "y", static_cast<long>(y.size()), static_cast<long>(x.size()));
  ESSCHER_DISPATCH(exp_double)(x.data(), y.data(), x.size());
}

}  // namespace esscher::simd
#endif
