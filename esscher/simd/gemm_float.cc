#include "esscher/simd/gemm_float.h"

#include <algorithm>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/simd/detail/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/simd/gemm_float.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// y[i,j] = <x_i, w_j> for R rows of X and C rows of W. 4 x 3 sums fill the registers of AVX2.
template <int R, int C>
HWY_INLINE void dots(const float* x, Index x_stride, const float* w, Index w_stride, Index k,
                     float* y, Index y_stride) {
  const hn::ScalableTag<float> d;
  const Index N = hn::Lanes(d);
  hn::Vec<decltype(d)> sum[R][C];
  HWY_UNROLL(4)
  for (int i = 0; i < R; ++i) {
    HWY_UNROLL(4)
    for (int j = 0; j < C; ++j) sum[i][j] = hn::Zero(d);
  }
  Index p = 0;
  for (; p + N <= k; p += N) {
    hn::Vec<decltype(d)> right[C];
    HWY_UNROLL(4)
    for (int j = 0; j < C; ++j) right[j] = hn::LoadU(d, w + j * w_stride + p);
    HWY_UNROLL(4)
    for (int i = 0; i < R; ++i) {
      const auto left = hn::LoadU(d, x + i * x_stride + p);
      HWY_UNROLL(4)
      for (int j = 0; j < C; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
  }
  for (int i = 0; i < R; ++i) {
    for (int j = 0; j < C; ++j) {
      float total = hn::GetLane(hn::SumOfLanes(d, sum[i][j]));
      for (Index q = p; q < k; ++q) total += x[i * x_stride + q] * w[j * w_stride + q];
      y[i * y_stride + j] = total;
    }
  }
}

template <int R>
HWY_INLINE void block_row(const float* x, Index x_stride, const float* w, Index w_stride, Index k,
                          Index m, float* y, Index y_stride) {
  Index j = 0;
  for (; j + 3 <= m; j += 3) {
    dots<R, 3>(x, x_stride, w + j * w_stride, w_stride, k, y + j, y_stride);
  }
  for (; j < m; ++j) dots<R, 1>(x, x_stride, w + j * w_stride, w_stride, k, y + j, y_stride);
}

void times_transposed_kernel(const float* x, Index x_stride, const float* w, Index w_stride,
                             Index n, Index m, Index k, float* y, Index y_stride) {
  Index i = 0;
  for (; i + 4 <= n; i += 4) {
    block_row<4>(x + i * x_stride, x_stride, w, w_stride, k, m, y + i * y_stride, y_stride);
  }
  for (; i < n; ++i) {
    block_row<1>(x + i * x_stride, x_stride, w, w_stride, k, m, y + i * y_stride, y_stride);
  }
}

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {
namespace {
HWY_EXPORT(times_transposed_kernel);
}  // namespace

MatrixF times_transposed(const MatrixViewF& X, const MatrixViewF& W) {
  check_dimension("times_transposed", "W (columns)", W.cols(), X.cols());
  constexpr Index kRows = 48;  // rows of W that stay in the second-level cache
  MatrixF Y(X.rows(), W.rows());
  const Index blocks = (W.rows() + kRows - 1) / kRows;
  parallel_for(blocks, [&](std::int64_t b) {
    const Index first = static_cast<Index>(b) * kRows;
    const Index rows = std::min(kRows, W.rows() - first);
    ESSCHER_DISPATCH(times_transposed_kernel)
    (X.data(), X.outerStride(), W.data() + first * W.outerStride(), W.outerStride(), X.rows(), rows,
     X.cols(), Y.data() + first, Y.cols());
  });
  return Y;
}

}  // namespace esscher
#endif
