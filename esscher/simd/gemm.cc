#include "esscher/simd/gemm.h"

#include <algorithm>

#include "esscher/base/error.h"
#include "esscher/simd/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/simd/gemm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A(i,p) stands at a[i * row + p * col]: both A and A' without a copy.
struct Left {
  const double* a;
  Index row;
  Index col;
};

// C[R rows, 3 vectors] += A[R,depth] B[depth, 3 vectors]; 4 x 3 accumulators fill AVX2's registers.
template <int R, int W, class D>
HWY_INLINE void tile(D d, Left left, const double* b, Index b_stride, double* c, Index c_stride,
                     Index depth) {
  const Index N = hn::Lanes(d);
  hn::Vec<D> sum[R][W];
  HWY_UNROLL(4)
  for (int i = 0; i < R; ++i) {
    HWY_UNROLL(4)
    for (int j = 0; j < W; ++j) sum[i][j] = hn::LoadU(d, c + i * c_stride + j * N);
  }
  for (Index p = 0; p < depth; ++p) {
    hn::Vec<D> right[W];
    HWY_UNROLL(4)
    for (int j = 0; j < W; ++j) right[j] = hn::LoadU(d, b + p * b_stride + j * N);
    HWY_UNROLL(4)
    for (int i = 0; i < R; ++i) {
      const auto x = hn::Set(d, left.a[i * left.row + p * left.col]);
      HWY_UNROLL(4)
      for (int j = 0; j < W; ++j) sum[i][j] = hn::MulAdd(x, right[j], sum[i][j]);
    }
  }
  HWY_UNROLL(4)
  for (int i = 0; i < R; ++i) {
    HWY_UNROLL(4)
    for (int j = 0; j < W; ++j) hn::StoreU(sum[i][j], d, c + i * c_stride + j * N);
  }
}

// R rows of C, all n columns: three vectors at a time, then one vector, then single entries.
template <int R>
HWY_INLINE void row_block(Left left, const double* b, Index b_stride, double* c, Index c_stride,
                          Index depth, Index n) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 1> one;
  const Index N = hn::Lanes(d);
  Index j = 0;
  for (; j + 3 * N <= n; j += 3 * N) tile<R, 3>(d, left, b + j, b_stride, c + j, c_stride, depth);
  for (; j + N <= n; j += N) tile<R, 1>(d, left, b + j, b_stride, c + j, c_stride, depth);
  for (; j < n; ++j) tile<R, 1>(one, left, b + j, b_stride, c + j, c_stride, depth);
}

void Multiply(const double* a, Index a_row, Index a_col, const double* b, Index b_stride, double* c,
              Index c_stride, Index m, Index depth, Index n) {
  constexpr Index kDepthBlock = 256;  // rows of B that stay in the second-level cache
  for (Index p = 0; p < depth; p += kDepthBlock) {
    const Index block = std::min(kDepthBlock, depth - p);
    Index i = 0;
    for (; i + 4 <= m; i += 4) {
      row_block<4>({a + i * a_row + p * a_col, a_row, a_col}, b + p * b_stride, b_stride,
                   c + i * c_stride, c_stride, block, n);
    }
    for (; i < m; ++i) {
      row_block<1>({a + i * a_row + p * a_col, a_row, a_col}, b + p * b_stride, b_stride,
                   c + i * c_stride, c_stride, block, n);
    }
  }
}

// out[i] += |sum_p A(i,p) W(p,.) - centre|^2 over W vectors of columns, for R rows.
template <int R, int W, class D>
HWY_INLINE void squares_tile(D d, const double* a, Index a_stride, const double* w, Index w_stride,
                             const double* centre, Index depth, double* out) {
  const Index N = hn::Lanes(d);
  hn::Vec<D> sum[R][W];
  HWY_UNROLL(4)
  for (int i = 0; i < R; ++i) {
    HWY_UNROLL(4)
    for (int j = 0; j < W; ++j) sum[i][j] = hn::Neg(hn::LoadU(d, centre + j * N));
  }
  for (Index p = 0; p < depth; ++p) {
    hn::Vec<D> right[W];
    HWY_UNROLL(4)
    for (int j = 0; j < W; ++j) right[j] = hn::LoadU(d, w + p * w_stride + j * N);
    HWY_UNROLL(4)
    for (int i = 0; i < R; ++i) {
      const auto x = hn::Set(d, a[i * a_stride + p]);
      HWY_UNROLL(4)
      for (int j = 0; j < W; ++j) sum[i][j] = hn::MulAdd(x, right[j], sum[i][j]);
    }
  }
  HWY_UNROLL(4)
  for (int i = 0; i < R; ++i) {
    auto total = hn::Mul(sum[i][0], sum[i][0]);
    HWY_UNROLL(4)
    for (int j = 1; j < W; ++j) total = hn::MulAdd(sum[i][j], sum[i][j], total);
    out[i] += hn::GetLane(hn::SumOfLanes(d, total));
  }
}

// R rows against all columns of W, each panel of columns only as deep as it is not zero.
template <int R>
HWY_INLINE void squares_block(const double* a, Index a_stride, const double* w,
                              const double* centre, Index n, double* out) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 1> one;
  const Index N = hn::Lanes(d);
  Index j = 0;
  for (; j + 3 * N <= n; j += 3 * N) {
    squares_tile<R, 3>(d, a, a_stride, w + j, n, centre + j, j + 3 * N, out);
  }
  for (; j + N <= n; j += N) squares_tile<R, 1>(d, a, a_stride, w + j, n, centre + j, j + N, out);
  for (; j < n; ++j) squares_tile<R, 1>(one, a, a_stride, w + j, n, centre + j, j + 1, out);
}

void WhitenedSquares(const double* a, Index a_stride, const double* w, const double* centre,
                     Index m, Index n, double* out) {
  Index i = 0;
  for (; i + 4 <= m; i += 4) {
    squares_block<4>(a + i * a_stride, a_stride, w, centre, n, out + i);
  }
  for (; i < m; ++i) squares_block<1>(a + i * a_stride, a_stride, w, centre, n, out + i);
}

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {
namespace {

HWY_EXPORT(Multiply);
HWY_EXPORT(WhitenedSquares);

}  // namespace

void add_product(const MatrixView& A, const MatrixView& B, Matrix& C) {
  check_dimension("add_product", "B (rows)", B.rows(), A.cols());
  check_dimension("add_product", "C (rows)", C.rows(), A.rows());
  check_dimension("add_product", "C (columns)", C.cols(), B.cols());
  ESSCHER_DISPATCH(Multiply)
  (A.data(), A.outerStride(), 1, B.data(), B.outerStride(), C.data(), C.cols(), A.rows(), A.cols(),
   B.cols());
}

void add_gram(const MatrixView& A, const MatrixView& B, Matrix& C) {
  check_dimension("add_gram", "B (rows)", B.rows(), A.rows());
  check_dimension("add_gram", "C (rows)", C.rows(), A.cols());
  check_dimension("add_gram", "C (columns)", C.cols(), B.cols());
  ESSCHER_DISPATCH(Multiply)
  (A.data(), 1, A.outerStride(), B.data(), B.outerStride(), C.data(), C.cols(), A.cols(), A.rows(),
   B.cols());
}

void add_gram(const MatrixView& A, Matrix& C) {
  check_dimension("add_gram", "C (rows)", C.rows(), A.cols());
  check_dimension("add_gram", "C (columns)", C.cols(), A.cols());
  constexpr Index kPanel = 12;  // rows of C whose part on and right of the diagonal is computed
  const Index d = A.cols();
  for (Index i = 0; i < d; i += kPanel) {
    ESSCHER_DISPATCH(Multiply)
    (A.data() + i, 1, A.outerStride(), A.data() + i, A.outerStride(), C.data() + i * d + i, d,
     std::min(kPanel, d - i), A.rows(), d - i);
  }
  C.triangularView<Eigen::StrictlyLower>() = C.transpose();
}

void add_whitened_squares(const MatrixView& A, const Matrix& W, const Vector& centre, Vector& out) {
  check_dimension("add_whitened_squares", "W (rows)", W.rows(), A.cols());
  check_dimension("add_whitened_squares", "W (columns)", W.cols(), A.cols());
  check_dimension("add_whitened_squares", "centre", centre.size(), A.cols());
  check_dimension("add_whitened_squares", "out", out.size(), A.rows());
  ESSCHER_DISPATCH(WhitenedSquares)
  (A.data(), A.outerStride(), W.data(), centre.data(), A.rows(), A.cols(), out.data());
}

}  // namespace esscher
#endif
