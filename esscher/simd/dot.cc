#include "esscher/simd/dot.h"

#include <string>

#include "esscher/base/error.h"
#include "esscher/simd/detail/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/simd/dot.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kPartial = 8;
using Eight = hn::CappedTag<double, kPartial>;
constexpr int kLanes = HWY_MIN(static_cast<int>(HWY_LANES(double)), kPartial);
constexpr int kVectors = kPartial / kLanes;

template <int R>
HWY_INLINE void dots(const double* y, Index stride, const double* w, Index count, double* out) {
  const Eight d;
  hn::Vec<Eight> sum[R][kVectors];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  Index i = 0;
  for (; i + kPartial <= count; i += kPartial) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      const auto weight = hn::LoadU(d, w + i + v * kLanes);
      HWY_UNROLL(5)
      for (int r = 0; r < R; ++r) {
        const auto x = hn::LoadU(d, y + r * stride + i + v * kLanes);
        sum[r][v] = hn::Add(sum[r][v], hn::Mul(x, weight));
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    HWY_ALIGN double part[kPartial];
    for (int v = 0; v < kVectors; ++v) hn::Store(sum[r][v], d, part + v * kLanes);
    for (Index j = i; j < count; ++j) part[j - i] += y[r * stride + j] * w[j];
    out[r] =
        ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
  }
}

void dot_columns(const double* y, Index stride, int columns, const double* w, Index count,
                 double* out) {
  switch (columns) {
    case 1: return dots<1>(y, stride, w, count, out);
    case 2: return dots<2>(y, stride, w, count, out);
    case 3: return dots<3>(y, stride, w, count, out);
    case 4: return dots<4>(y, stride, w, count, out);
    default: return dots<5>(y, stride, w, count, out);
  }
}

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher::simd {
namespace {

HWY_EXPORT(dot_columns);

}  // namespace

void dot_columns(const double* y, Index stride, int columns, const double* weights, Index count,
                 double* out) {
  if (columns < 1 || columns > kMostDots) {
    throw_argument("dot_columns", "columns", std::to_string(columns), "1 to 5");
  }
  ESSCHER_DISPATCH(dot_columns)(y, stride, columns, weights, count, out);
}

double dot(const double* x, const double* y, Index count) {
  double out = 0;
  dot_columns(x, 0, 1, y, count, &out);
  return out;
}

}  // namespace esscher::simd
#endif
