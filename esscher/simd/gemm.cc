#include "esscher/simd/gemm.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/simd/detail/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/simd/gemm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A(i,p) is a[i * row + p * col], so that A and A' are read without a copy.
struct Left {
  const double* a;
  Index row;
  Index col;
};

// C[R rows, 3 vectors] += A[R,depth] B[depth, 3 vectors]. 4 x 3 accumulators fill the registers of
// AVX2.
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

// R rows of C, all n columns: three vectors at a time, two, one, then half a vector of AVX-512, a
// pair and a single entry.
template <int R>
HWY_INLINE void row_block(Left left, const double* b, Index b_stride, double* c, Index c_stride,
                          Index depth, Index n) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 4> four;
  const hn::CappedTag<double, 2> two;
  const hn::CappedTag<double, 1> one;
  const Index N = hn::Lanes(d);
  const Index F = hn::Lanes(four);
  const Index T = hn::Lanes(two);
  Index j = 0;
  for (; j + 3 * N <= n; j += 3 * N) tile<R, 3>(d, left, b + j, b_stride, c + j, c_stride, depth);
  for (; j + 2 * N <= n; j += 2 * N) tile<R, 2>(d, left, b + j, b_stride, c + j, c_stride, depth);
  for (; j + N <= n; j += N) tile<R, 1>(d, left, b + j, b_stride, c + j, c_stride, depth);
  for (; j + F <= n; j += F) tile<R, 1>(four, left, b + j, b_stride, c + j, c_stride, depth);
  for (; j + T <= n; j += T) tile<R, 1>(two, left, b + j, b_stride, c + j, c_stride, depth);
  for (; j < n; ++j) tile<R, 1>(one, left, b + j, b_stride, c + j, c_stride, depth);
}

void multiply(const double* a, Index a_row, Index a_col, const double* b, Index b_stride, double* c,
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

// out[i] += |sum_p a[i][p] W(p,.) - centre|^2 over W vectors of columns, for R rows a[i].
template <int R, int W, class D>
HWY_INLINE void squares_tile(D d, const double* const* a, const double* w, Index w_stride,
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
      const auto x = hn::Set(d, a[i][p]);
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

// R rows against all columns of W. Each panel of columns is read only as far down as it is not
// zero.
template <int R>
HWY_INLINE void squares_block(const double* const* a, const double* w, const double* centre,
                              Index n, double* out) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 1> one;
  const Index N = hn::Lanes(d);
  Index j = 0;
  for (; j + 3 * N <= n; j += 3 * N) {
    squares_tile<R, 3>(d, a, w + j, n, centre + j, j + 3 * N, out);
  }
  for (; j + N <= n; j += N) squares_tile<R, 1>(d, a, w + j, n, centre + j, j + N, out);
  for (; j < n; ++j) squares_tile<R, 1>(one, a, w + j, n, centre + j, j + 1, out);
}

// The rows are a + rows[i] * a_stride for i < m, or the first m rows if rows is nullptr.
void whitened_squares_kernel(const double* a, Index a_stride, const Index* rows, const double* w,
                             const double* centre, Index m, Index n, double* out) {
  const auto row = [&](Index i) { return a + (rows ? rows[i] : i) * a_stride; };
  Index i = 0;
  for (; i + 4 <= m; i += 4) {
    const double* four[] = {row(i), row(i + 1), row(i + 2), row(i + 3)};
    squares_block<4>(four, w, centre, n, out + i);
  }
  for (; i < m; ++i) {
    const double* one[] = {row(i)};
    squares_block<1>(one, w, centre, n, out + i);
  }
}

// y += x * row over the columns [from, n). A few columns before `from` may be changed too.
HWY_INLINE void add_row(double x, const double* row, Index from, Index n, double* y) {
  const hn::ScalableTag<double> d;
  const Index N = hn::Lanes(d);
  const auto xs = hn::Set(d, x);
  Index j = from - from % N;
  for (; j + N <= n; j += N) {
    hn::StoreU(hn::MulAdd(xs, hn::LoadU(d, row + j), hn::LoadU(d, y + j)), d, y + j);
  }
  for (; j < n; ++j) y[j] += x * row[j];
}

// W = U^-1 for C = U'U with U upper triangular; C [n,n] is overwritten by U. Rows are treated in
// order, and only entries on and right of the diagonal are meaningful.
void inverse_factor_kernel(double* c, Index n, double* w) {
  for (Index k = 0; k < n; ++k) {
    double* row = c + k * n;
    const double inverse = 1 / std::sqrt(row[k]);
    for (Index j = k; j < n; ++j) row[j] *= inverse;
    for (Index i = k + 1; i < n; ++i) add_row(-row[i], row, i, n, c + i * n);
  }
  std::fill_n(w, n * n, 0.0);
  for (Index i = n - 1; i >= 0; --i) {
    double* row = w + i * n;
    for (Index j = i + 1; j < n; ++j) add_row(-c[i * n + j], w + j * n, j, n, row);
    row[i] = 1;
    const double inverse = 1 / c[i * n + i];
    for (Index j = i; j < n; ++j) row[j] *= inverse;
  }
}

// out[i,.] = sqrt(weights[i]) a[rows[i],.], sum += weights[i] a[rows[i],.].
void gather_roots(const double* a, Index a_stride, const Index* rows, const double* weights,
                  Index m, Index n, double* out, double* sum) {
  const hn::ScalableTag<double> d;
  const Index N = hn::Lanes(d);
  for (Index i = 0; i < m; ++i) {
    const double* row = a + rows[i] * a_stride;
    const double root = std::sqrt(weights[i]);
    const auto w = hn::Set(d, weights[i]);
    const auto r = hn::Set(d, root);
    Index j = 0;
    for (; j + N <= n; j += N) {
      const auto x = hn::LoadU(d, row + j);
      hn::StoreU(hn::Mul(r, x), d, out + i * n + j);
      hn::StoreU(hn::MulAdd(w, x, hn::LoadU(d, sum + j)), d, sum + j);
    }
    for (; j < n; ++j) {
      out[i * n + j] = root * row[j];
      sum[j] += weights[i] * row[j];
    }
  }
}

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {
namespace {

HWY_EXPORT(multiply);
HWY_EXPORT(whitened_squares_kernel);
HWY_EXPORT(gather_roots);
HWY_EXPORT(inverse_factor_kernel);

// C += A' A, A [m,d], on and right of the diagonal. Some entries left of it are changed too.
void add_half_gram(const double* a, Index stride, Index m, Index d, double* c) {
  constexpr Index kPanel = 12;  // rows of C at a time
  for (Index i = 0; i < d; i += kPanel) {
    ESSCHER_DISPATCH(multiply)
    (a + i, 1, stride, a + i, stride, c + i * d + i, d, std::min(kPanel, d - i), m, d - i);
  }
}

}  // namespace

void add_product(const MatrixView& A, const MatrixView& B, Eigen::Ref<Matrix> C) {
  check_dimension("add_product", "B (rows)", B.rows(), A.cols());
  check_dimension("add_product", "C (rows)", C.rows(), A.rows());
  check_dimension("add_product", "C (columns)", C.cols(), B.cols());
  ESSCHER_DISPATCH(multiply)
  (A.data(), A.outerStride(), 1, B.data(), B.outerStride(), C.data(), C.outerStride(), A.rows(),
   A.cols(), B.cols());
}

void add_gram(const MatrixView& A, const MatrixView& B, Matrix& C) {
  check_dimension("add_gram", "B (rows)", B.rows(), A.rows());
  check_dimension("add_gram", "C (rows)", C.rows(), A.cols());
  check_dimension("add_gram", "C (columns)", C.cols(), B.cols());
  ESSCHER_DISPATCH(multiply)
  (A.data(), 1, A.outerStride(), B.data(), B.outerStride(), C.data(), C.cols(), A.cols(), A.rows(),
   B.cols());
}

void add_gram(const MatrixView& A, Matrix& C) {
  check_dimension("add_gram", "C (rows)", C.rows(), A.cols());
  check_dimension("add_gram", "C (columns)", C.cols(), A.cols());
  add_half_gram(A.data(), A.outerStride(), A.rows(), A.cols(), C.data());
  C.triangularView<Eigen::StrictlyLower>() = C.transpose();
}

void add_weighted_gram(const MatrixView& A, std::span<const Index> rows,
                       std::span<const double> weights, Matrix& C, Vector& sum) {
  constexpr Index kBlock = 64;  // rows that stay in the first-level cache
  const Index d = A.cols();
  const auto count = static_cast<Index>(rows.size());
  check_dimension("add_weighted_gram", "weights", static_cast<Index>(weights.size()), count);
  check_dimension("add_weighted_gram", "C (rows)", C.rows(), d);
  check_dimension("add_weighted_gram", "C (columns)", C.cols(), d);
  check_dimension("add_weighted_gram", "sum", sum.size(), d);
  Matrix block(kBlock, d);
  for (Index first = 0; first < count; first += kBlock) {
    const Index m = std::min(kBlock, count - first);
    ESSCHER_DISPATCH(gather_roots)
    (A.data(), A.outerStride(), rows.data() + first, weights.data() + first, m, d, block.data(),
     sum.data());
    add_half_gram(block.data(), d, m, d, C.data());
  }
  C.triangularView<Eigen::StrictlyLower>() = C.transpose();
}

namespace {

void squares(const MatrixView& A, const Index* rows, Index count, const Matrix& W,
             const Vector& centre, double* out) {
  check_dimension("whitened squares", "W (rows)", W.rows(), A.cols());
  check_dimension("whitened squares", "W (columns)", W.cols(), A.cols());
  check_dimension("whitened squares", "centre", centre.size(), A.cols());
  std::fill_n(out, count, 0.0);
  ESSCHER_DISPATCH(whitened_squares_kernel)
  (A.data(), A.outerStride(), rows, W.data(), centre.data(), count, A.cols(), out);
}

}  // namespace

Vector whitened_squares(const MatrixView& A, const Matrix& W, const Vector& centre) {
  Vector out(A.rows());
  squares(A, nullptr, A.rows(), W, centre, out.data());
  return out;
}

Vector whitened_squares(const MatrixView& A, std::span<const Index> rows, const Matrix& W,
                        const Vector& centre) {
  Vector out(static_cast<Index>(rows.size()));
  squares(A, rows.data(), out.size(), W, centre, out.data());
  return out;
}

Matrix inverse_factor(const Matrix& C, double& log_determinant) {
  check_dimension("inverse_factor", "C (columns)", C.cols(), C.rows());
  Matrix U = C;
  Matrix W(C.rows(), C.rows());
  ESSCHER_DISPATCH(inverse_factor_kernel)(U.data(), C.rows(), W.data());
  log_determinant = 2 * U.diagonal().array().log().sum();
  return W;
}

}  // namespace esscher
#endif
