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

// Four vectors of outputs stay in registers while i runs. `b` has `pad` zeros on either side, at least
// as many as there are outputs in a step, and so has `out` behind its end.
void convolve_padded(const double* a, std::ptrdiff_t na, const double* b, std::ptrdiff_t nb,
                     double* out) {
  const hn::ScalableTag<double> dd;
  using V = hn::Vec<decltype(dd)>;
  const auto N = static_cast<std::ptrdiff_t>(hn::Lanes(dd));
  const std::ptrdiff_t step = 4 * N;
  for (std::ptrdiff_t k = 0; k < na + nb - 1; k += step) {
    V s0 = hn::LoadU(dd, out + k);
    V s1 = hn::LoadU(dd, out + k + N);
    V s2 = hn::LoadU(dd, out + k + 2 * N);
    V s3 = hn::LoadU(dd, out + k + 3 * N);
    const std::ptrdiff_t from = std::max<std::ptrdiff_t>(0, k - nb + 1);
    const std::ptrdiff_t to = std::min(na, k + step);
    for (std::ptrdiff_t i = from; i < to; ++i) {
      const V x = hn::Set(dd, a[i]);
      const double* y = b + (k - i);
      s0 = hn::MulAdd(x, hn::LoadU(dd, y), s0);
      s1 = hn::MulAdd(x, hn::LoadU(dd, y + N), s1);
      s2 = hn::MulAdd(x, hn::LoadU(dd, y + 2 * N), s2);
      s3 = hn::MulAdd(x, hn::LoadU(dd, y + 3 * N), s3);
    }
    hn::StoreU(s0, dd, out + k);
    hn::StoreU(s1, dd, out + k + N);
    hn::StoreU(s2, dd, out + k + 2 * N);
    hn::StoreU(s3, dd, out + k + 3 * N);
  }
}

std::ptrdiff_t outputs_per_step() {
  return 4 * static_cast<std::ptrdiff_t>(hn::Lanes(hn::ScalableTag<double>()));
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
  if (a.empty() || b.empty()) return;
  check_dimension("convolve_add", "out", static_cast<long>(out.size()),
                  static_cast<long>(a.size() + b.size() - 1));
  const auto pad = static_cast<std::size_t>(ESSCHER_DISPATCH(outputs_per_step)());
  std::vector<double> padded(b.size() + 2 * pad), sums(out.size() + pad);
  std::copy(b.begin(), b.end(), padded.begin() + static_cast<std::ptrdiff_t>(pad));
  std::copy(out.begin(), out.end(), sums.begin());
  ESSCHER_DISPATCH(convolve_padded)
  (a.data(), static_cast<std::ptrdiff_t>(a.size()), padded.data() + pad,
   static_cast<std::ptrdiff_t>(b.size()), sums.data());
  std::copy_n(sums.begin(), out.size(), out.begin());
}

}  // namespace esscher::simd
#endif
