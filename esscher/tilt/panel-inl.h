// Products of a matrix and a panel: the two matrix products of attention, with sums in registers.
//
// A panel holds two vectors of queries side by side, one query per lane. The other operand is read
// number by number where it lies, each number is multiplied with both vectors, and kRows rows of
// sums stay in registers.

#if defined(ESSCHER_TILT_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESSCHER_TILT_PANEL_INL_H_
#undef ESSCHER_TILT_PANEL_INL_H_
#else
#define ESSCHER_TILT_PANEL_INL_H_
#endif

#include <cstddef>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of the register tile: 16 sums where there are 32 registers, else 12.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
inline constexpr std::size_t kRows = 8;
#else
inline constexpr std::size_t kRows = 6;
#endif

// An operand whose entry (g, i) is p[g * row + i * column].
template <class T>
struct Entries {
  const T* p;
  std::size_t row, column;

  [[nodiscard]] Entries at(std::size_t g) const { return {p + g * row, row, column}; }
};

// y[g, 0..2N) = sum_i x(g, i) * panel[i, 0..2N) for g < G and i < n.
template <std::size_t G, class D, class T = hn::TFromD<D>>
HWY_INLINE void rows_times_panel(D d, Entries<T> x, const T* HWY_RESTRICT panel, std::size_t n,
                                 T* HWY_RESTRICT y) {
  const std::size_t N = hn::Lanes(d);
  hn::Vec<D> left[G], right[G];
  HWY_UNROLL(8)
  for (std::size_t g = 0; g < G; ++g) left[g] = right[g] = hn::Zero(d);
  for (std::size_t i = 0; i < n; ++i) {
    const auto p0 = hn::Load(d, panel + i * 2 * N), p1 = hn::Load(d, panel + i * 2 * N + N);
    HWY_UNROLL(8)
    for (std::size_t g = 0; g < G; ++g) {
      const auto b = hn::Set(d, x.p[g * x.row + i * x.column]);
      left[g] = hn::MulAdd(b, p0, left[g]);
      right[g] = hn::MulAdd(b, p1, right[g]);
    }
  }
  HWY_UNROLL(8)
  for (std::size_t g = 0; g < G; ++g) {
    hn::Store(left[g], d, y + g * 2 * N);
    hn::Store(right[g], d, y + g * 2 * N + N);
  }
}

// The same for any number of rows. `meanwhile(g, count)` is called before rows g .. g + count are
// computed.
template <class D, class Meanwhile, class T = hn::TFromD<D>>
HWY_INLINE void matrix_times_panel(D d, Entries<T> x, std::size_t rows, const T* panel,
                                   std::size_t n, T* y, const Meanwhile& meanwhile) {
  const std::size_t N = hn::Lanes(d);
  std::size_t g = 0;
  for (; g + kRows <= rows; g += kRows) {
    meanwhile(g, kRows);
    rows_times_panel<kRows>(d, x.at(g), panel, n, y + g * 2 * N);
  }
  for (; g + 4 <= rows; g += 4) rows_times_panel<4>(d, x.at(g), panel, n, y + g * 2 * N);
  for (; g + 2 <= rows; g += 2) rows_times_panel<2>(d, x.at(g), panel, n, y + g * 2 * N);
  if (g < rows) rows_times_panel<1>(d, x.at(g), panel, n, y + g * 2 * N);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void matrix_times_panel(D d, Entries<T> x, std::size_t rows, const T* panel,
                                   std::size_t n, T* y) {
  matrix_times_panel(d, x, rows, panel, n, y, [](std::size_t, std::size_t) {});
}

// sum[j, i] = factor[i] * sum[j, i] + part[j, i] in double, for j < rows and i < 2N. Everything is
// aligned.
template <class T>
HWY_INLINE void add_panel(double* HWY_RESTRICT sum, const double* HWY_RESTRICT factor,
                          const T* HWY_RESTRICT part, std::size_t rows) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const std::size_t panel = 2 * hn::Lanes(hn::ScalableTag<T>());
  for (std::size_t i = 0; i < panel; i += hn::Lanes(d)) {
    const auto f = hn::Load(d, factor + i);
    for (std::size_t at = i; at < rows * panel; at += panel) {
      const auto old = hn::Load(d, sum + at);
      if constexpr (sizeof(T) == 8) {
        hn::Store(hn::MulAdd(f, old, hn::Load(narrow, part + at)), d, sum + at);
      } else {
        const auto x = hn::PromoteTo(d, hn::Load(narrow, part + at));
        hn::Store(hn::MulAdd(f, old, x), d, sum + at);
      }
    }
  }
}

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
