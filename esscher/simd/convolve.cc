#include "esscher/simd/convolve.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/simd/detail/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/simd/convolve.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Outputs of a step are W vectors of R sequences: they stay in registers while i runs, and each
// load of b serves R multiply-adds.
constexpr std::ptrdiff_t kMostVectors = 8;

// `b` has `pad` zeros on either side, at least as many as there are outputs in a step, and so have
// the sequences of out, `stride` apart, behind their ends.
template <int R, int W>
HWY_INLINE void convolve_rows(const double* const* a, std::ptrdiff_t na, const double* b,
                              std::ptrdiff_t nb, double* out, std::ptrdiff_t stride) {
  const hn::ScalableTag<double> dd;
  using V = hn::Vec<decltype(dd)>;
  const auto N = static_cast<std::ptrdiff_t>(hn::Lanes(dd));
  const std::ptrdiff_t step = W * N;
  for (std::ptrdiff_t k = 0; k < na + nb - 1; k += step) {
    V sum[R][W];
    HWY_UNROLL(4)
    for (int r = 0; r < R; ++r) {
      HWY_UNROLL(8)
      for (int j = 0; j < W; ++j) sum[r][j] = hn::LoadU(dd, out + r * stride + k + j * N);
    }
    const std::ptrdiff_t from = std::max<std::ptrdiff_t>(0, k - nb + 1);
    const std::ptrdiff_t to = std::min(na, k + step);
    for (std::ptrdiff_t i = from; i < to; ++i) {
      V y[W];
      HWY_UNROLL(8)
      for (int j = 0; j < W; ++j) y[j] = hn::LoadU(dd, b + (k - i) + j * N);
      HWY_UNROLL(4)
      for (int r = 0; r < R; ++r) {
        const V x = hn::Set(dd, a[r][i]);
        HWY_UNROLL(8)
        for (int j = 0; j < W; ++j) sum[r][j] = hn::MulAdd(x, y[j], sum[r][j]);
      }
    }
    HWY_UNROLL(4)
    for (int r = 0; r < R; ++r) {
      HWY_UNROLL(8)
      for (int j = 0; j < W; ++j) hn::StoreU(sum[r][j], dd, out + r * stride + k + j * N);
    }
  }
}

void convolve_padded(const double* const* a, std::ptrdiff_t rows, std::ptrdiff_t na,
                     const double* b, std::ptrdiff_t nb, double* out, std::ptrdiff_t stride) {
  std::ptrdiff_t r = 0;
  for (; r + 4 <= rows; r += 4) convolve_rows<4, 2>(a + r, na, b, nb, out + r * stride, stride);
  for (; r + 2 <= rows; r += 2) convolve_rows<2, 4>(a + r, na, b, nb, out + r * stride, stride);
  if (r < rows) convolve_rows<1, 8>(a + r, na, b, nb, out + r * stride, stride);
}

std::ptrdiff_t outputs_per_step() {
  return kMostVectors * static_cast<std::ptrdiff_t>(hn::Lanes(hn::ScalableTag<double>()));
}

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher::simd {
namespace {

HWY_EXPORT(convolve_padded);
HWY_EXPORT(outputs_per_step);

}  // namespace

void convolve_add(std::span<const double> a, std::span<const double> b, std::span<double> out) {
  convolve_add(std::vector{a}, b, std::vector{out});
}

void convolve_add(const std::vector<std::span<const double>>& a, std::span<const double> b,
                  const std::vector<std::span<double>>& out) {
  check_dimension("convolve_add", "out", static_cast<long>(out.size()),
                  static_cast<long>(a.size()));
  if (a.empty() || a[0].empty() || b.empty()) return;
  const std::size_t size = a[0].size() + b.size() - 1;
  const auto pad = static_cast<std::size_t>(ESSCHER_DISPATCH(outputs_per_step)());
  std::vector<double> padded(b.size() + 2 * pad), sums(a.size() * (size + pad));
  std::copy(b.begin(), b.end(), padded.begin() + static_cast<std::ptrdiff_t>(pad));
  std::vector<const double*> rows;
  for (std::size_t r = 0; r < a.size(); ++r) {
    check_dimension("convolve_add", "a", static_cast<long>(a[r].size()),
                    static_cast<long>(a[0].size()));
    check_dimension("convolve_add", "out", static_cast<long>(out[r].size()),
                    static_cast<long>(size));
    rows.push_back(a[r].data());
    std::copy(out[r].begin(), out[r].end(), sums.data() + r * (size + pad));
  }
  ESSCHER_DISPATCH(convolve_padded)
  (rows.data(), static_cast<std::ptrdiff_t>(rows.size()), static_cast<std::ptrdiff_t>(a[0].size()),
   padded.data() + pad, static_cast<std::ptrdiff_t>(b.size()), sums.data(),
   static_cast<std::ptrdiff_t>(size + pad));
  for (std::size_t r = 0; r < a.size(); ++r) {
    std::copy_n(sums.data() + r * (size + pad), size, out[r].data());
  }
}

}  // namespace esscher::simd
#endif
