#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "esscher/simd/detail/dispatch.h"
#include "esscher/tilt/detail/arena.h"
#include "esscher/tilt/detail/shift.h"
#include "esscher/tilt/many.h"
#include "hwy/aligned_allocator.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/tilt/many_kernel.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h, so that each target gets its own bodies.
#include "esscher/simd/exp-inl.h"
#include "esscher/tilt/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using detail::choose_shift;
using detail::ManySums;
using detail::ManyTask;

// Rows of the register tile, and tokens per tile of sums.
inline constexpr std::size_t kRows = 6, kTokens = 16 * kRows;

// y[g, 0..2N) = sum_i x[g * x_row + i * x_col] * panel[i, 0..2N) for g < G, with twelve sums in
// registers.
template <std::size_t G, class D, class T = hn::TFromD<D>>
HWY_INLINE void rows_times_panel(D d, const T* x, std::size_t x_row, std::size_t x_col,
                                 const T* panel, std::size_t n, T* y) {
  const std::size_t N = hn::Lanes(d);
  hn::Vec<D> left[G], right[G];
  HWY_UNROLL(8)
  for (std::size_t g = 0; g < G; ++g) left[g] = right[g] = hn::Zero(d);
  for (std::size_t i = 0; i < n; ++i) {
    const auto p0 = hn::Load(d, panel + i * 2 * N), p1 = hn::Load(d, panel + i * 2 * N + N);
    HWY_UNROLL(8)
    for (std::size_t g = 0; g < G; ++g) {
      const auto b = hn::Set(d, x[g * x_row + i * x_col]);
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

// The same for any number of rows.
template <class D, class T = hn::TFromD<D>>
void matrix_times_panel(D d, const T* x, std::size_t rows, std::size_t x_row, std::size_t x_col,
                        const T* panel, std::size_t n, T* y) {
  const std::size_t N = hn::Lanes(d);
  std::size_t g = 0;
  for (; g + kRows <= rows; g += kRows) {
    rows_times_panel<kRows>(d, x + g * x_row, x_row, x_col, panel, n, y + g * 2 * N);
  }
  for (; g + 4 <= rows; g += 4) {
    rows_times_panel<4>(d, x + g * x_row, x_row, x_col, panel, n, y + g * 2 * N);
  }
  for (; g < rows; ++g) {
    rows_times_panel<1>(d, x + g * x_row, x_row, x_col, panel, n, y + g * 2 * N);
  }
}

// to[j] = from[j] - shift[j] for j < n. `to` and `shift` are aligned and have room for whole
// vectors.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_shifted(D d, const T* HWY_RESTRICT from, const T* HWY_RESTRICT shift,
                              std::size_t n, T* HWY_RESTRICT to) {
  const std::size_t N = hn::Lanes(d);
  std::size_t j = 0;
  for (; j + N <= n; j += N) {
    hn::Store(hn::Sub(hn::LoadU(d, from + j), hn::Load(d, shift + j)), d, to + j);
  }
  for (; j < n; ++j) to[j] = from[j] - shift[j];
}

// Each lane holds one query everywhere. Two vectors of queries are a panel.
template <class T>
class Many {
 public:
  explicit Many(const ManyTask<T>& task) : task_(task) {
    allocate();
    choose_shift(task.keys, key_shift_);
    choose_shift(task.values, value_shift_);
    for (std::size_t q = 0; q < q_; ++q) {
      const T* a = row(task.queries, q);
      T* column = packed_queries_ + q / panel_ * panel_ * dk_ + q % panel_;
      for (std::size_t j = 0; j < dk_; ++j) column[j * panel_] = a[j];
    }
  }

  void run(ManySums& out) {
    const auto n = static_cast<std::size_t>(task_.keys.n);
    for (std::size_t first = 0; first < n; first += kTokens) {
      const std::size_t m = std::min(kTokens, n - first);
      for (std::size_t l = 0; l < m; l += kRows) score(first, l, std::min(kRows, m - l));
      if (task_.bias != nullptr) add_bias(first, m);
      for (std::size_t q = 0; q < q_padded_; q += panel_) {
        weigh(q, m);
        weigh(q + hn::Lanes(D()), m);
        matrix_times_panel(D(), values_, dv_, 1, dv_padded_, scores_ + q * kTokens, m, tile_sum_);
        add_to(sum_ + q * dv_, tile_sum_, dv_ * panel_);
      }
    }
    finish(out);
  }

 private:
  using D = hn::ScalableTag<T>;

  void allocate() {
    panel_ = 2 * hn::Lanes(D());
    // Sizes are rounded up to whole panels, so that the next buffer in the block is aligned, also
    // for doubles.
    const auto pad = [this](std::size_t n) { return (n + panel_ - 1) / panel_ * panel_; };
    q_ = static_cast<std::size_t>(task_.queries.n);
    dk_ = static_cast<std::size_t>(task_.keys.d);
    dv_ = static_cast<std::size_t>(task_.values.d);
    q_padded_ = pad(q_);
    dk_padded_ = pad(dk_);
    dv_padded_ = pad(dv_);
    const std::size_t wide = std::is_same_v<T, double> ? 1 : 2;  // T per double
    const std::size_t total = (kRows + 1) * dk_padded_ + (kTokens + 1) * dv_padded_ + dv_ * panel_ +
                              q_padded_ * (dk_ + kTokens + 1 + wide + dv_ * wide);
    block_ = hwy::AllocateAligned<T>(total);
    std::fill_n(block_.get(), total, T(0));
    detail::Arena<T> arena(block_.get(), total);
    key_shift_ = arena.take(dk_padded_);
    value_shift_ = arena.take(dv_padded_);
    keys_ = arena.take(kRows * dk_padded_);
    values_ = arena.take(kTokens * dv_padded_);
    tile_sum_ = arena.take(dv_ * panel_);
    packed_queries_ = arena.take(q_padded_ * dk_);
    scores_ = arena.take(q_padded_ * kTokens);
    max_ = arena.take(q_padded_);
    std::fill_n(max_, q_padded_, -std::numeric_limits<T>::infinity());
    norm_ = reinterpret_cast<double*>(arena.take(q_padded_ * wide));
    sum_ = reinterpret_cast<double*>(arena.take(q_padded_ * dv_ * wide));
  }

  // Reads `rows` tokens from first + l on, scores them and keeps their values for the sums. It
  // takes a few tokens at a time while the next few are being fetched, so that memory is busy all
  // the time.
  void score(std::size_t first, std::size_t l, std::size_t rows) {
    for (std::size_t g = 0; g < rows; ++g) {
      const std::size_t i = first + l + g;
      fetch(task_.keys, i + kRows);
      fetch(task_.values, i + kRows);
      store_shifted(D(), row(task_.keys, i), key_shift_, dk_, keys_ + g * dk_padded_);
      store_shifted(D(), row(task_.values, i), value_shift_, dv_, values_ + (l + g) * dv_padded_);
    }
    for (std::size_t q = 0; q < q_padded_; q += panel_) {
      matrix_times_panel(D(), keys_, rows, dk_padded_, 1, packed_queries_ + q * dk_, dk_,
                         scores_ + q * kTokens + l * panel_);
    }
  }

  static const T* row(const Rows<T>& x, std::size_t l) {
    return x.data + l * static_cast<std::size_t>(x.stride);
  }

  // Inlined, because GCC deletes calls of a function that only prefetches.
  static HWY_INLINE void fetch(const Rows<T>& x, std::size_t l) {
    if (l >= static_cast<std::size_t>(x.n)) return;
    constexpr std::size_t kLine = 64 / sizeof(T);
    const T* from = row(x, l);
    for (std::size_t j = 0; j < static_cast<std::size_t>(x.d); j += kLine) hwy::Prefetch(from + j);
  }

  void add_bias(std::size_t first, std::size_t m) {
    for (std::size_t q = 0; q < q_padded_; q += panel_) {
      for (std::size_t l = 0; l < m; ++l) {
        T* s = scores_ + q * kTokens + l * panel_;
        for (std::size_t i = 0; i < panel_; ++i) s[i] += task_.bias[first + l];
      }
    }
  }

  // Turns the scores of one vector of queries into weights relative to their running maxima.
  void weigh(std::size_t q, std::size_t m) {
    const D d;
    const std::size_t N = hn::Lanes(d);
    T* s = scores_ + q / panel_ * panel_ * kTokens + q % panel_;
    const auto old_max = hn::Load(d, max_ + q);
    auto max = old_max;
    for (std::size_t l = 0; l < m; ++l) max = hn::Max(max, hn::Load(d, s + l * panel_));
    hn::Store(max, d, max_ + q);
    if (!hn::AllTrue(d, hn::Eq(max, old_max))) {
      HWY_ALIGN T before[hn::MaxLanes(d)];
      hn::Store(old_max, d, before);
      for (std::size_t i = 0; i < N; ++i) raise(q + i, before[i], max_[q + i]);
    }
    // While all tokens are masked, 0 is subtracted, so that -inf stays -inf and weighs 0.
    const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity());
    const auto base = hn::IfThenZeroElse(hn::Eq(max, lowest), max);
    auto norm = hn::Zero(d);
    for (std::size_t l = 0; l < m; ++l) {
      const auto w = exp_of_nonpositive(d, hn::Sub(hn::Load(d, s + l * panel_), base));
      hn::Store(w, d, s + l * panel_);
      norm = hn::Add(norm, w);
    }
    HWY_ALIGN T norms[hn::MaxLanes(d)];
    hn::Store(norm, d, norms);
    for (std::size_t i = 0; i < N; ++i) norm_[q + i] += static_cast<double>(norms[i]);
  }

  void raise(std::size_t q, T from, T to) {
    if (norm_[q] == 0 || from == to) return;
    const double factor = std::exp(static_cast<double>(from) - static_cast<double>(to));
    norm_[q] *= factor;
    for (std::size_t j = 0; j < dv_; ++j) sum_at(q, j) *= factor;
  }

  double& sum_at(std::size_t q, std::size_t j) {
    return sum_[q / panel_ * panel_ * dv_ + j * panel_ + q % panel_];
  }

  void finish(ManySums& out) {
    for (std::size_t q = 0; q < q_; ++q) {
      const T* a = row(task_.queries, q);
      double offset = 0;
      for (std::size_t j = 0; j < dk_; ++j) {
        offset += static_cast<double>(a[j]) * static_cast<double>(key_shift_[j]);
      }
      const auto i = static_cast<Index>(q);
      out.norm[i] = norm_[q];
      out.max[i] = static_cast<double>(max_[q]) + offset;
      for (std::size_t j = 0; j < dv_; ++j) {
        out.sum(i, static_cast<Index>(j)) =
            sum_at(q, j) + norm_[q] * static_cast<double>(value_shift_[j]);
      }
    }
  }

  const ManyTask<T>& task_;
  hwy::AlignedFreeUniquePtr<T[]> block_;
  std::size_t panel_, q_, q_padded_, dk_, dk_padded_, dv_, dv_padded_;
  T *key_shift_, *value_shift_;
  T* keys_;            // [kRows,dk_padded] shifted
  T* values_;          // [kTokens,dv_padded] shifted
  T* packed_queries_;  // [panels,dk,panel]
  T* scores_;          // [panels,kTokens,panel], then weights
  T* tile_sum_;        // [dv,panel]
  T* max_;             // [q_padded]
  double* norm_;       // [q_padded]
  double* sum_;        // [panels,dv,panel]
};

void many_float(const ManyTask<float>& task, ManySums& sums) { Many<float>(task).run(sums); }
void many_double(const ManyTask<double>& task, ManySums& sums) { Many<double>(task).run(sums); }

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher::detail {

HWY_EXPORT(many_float);
HWY_EXPORT(many_double);

void run_many(const ManyTask<float>& task, ManySums& sums) {
  ESSCHER_DISPATCH(many_float)(task, sums);
}

void run_many(const ManyTask<double>& task, ManySums& sums) {
  ESSCHER_DISPATCH(many_double)(task, sums);
}

}  // namespace esscher::detail
#endif
