#include "esscher/tilt/many.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/simd/dispatch.h"
#include "esscher/tilt/shift.h"
#include "hwy/aligned_allocator.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/tilt/many.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h, so that each target gets its own bodies.
#include "esscher/simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Tokens per tile, a multiple of the register tile's 6 rows.
inline constexpr std::size_t kTokens = 96;

// y[g, 0..2N) = sum_i x[g * x_row + i * x_col] * panel[i, 0..2N), g < G: twelve sums in registers.
template <int G, class D, class T = hn::TFromD<D>>
HWY_INLINE void RowsTimesPanel(D d, const T* x, std::size_t x_row, std::size_t x_col,
                               const T* panel, std::size_t n, T* y, std::size_t y_row) {
  const std::size_t N = hn::Lanes(d);
  hn::Vec<D> left[G], right[G];
  HWY_UNROLL(8)
  for (int g = 0; g < G; ++g) left[g] = right[g] = hn::Zero(d);
  for (std::size_t i = 0; i < n; ++i) {
    const auto p0 = hn::Load(d, panel + i * 2 * N), p1 = hn::Load(d, panel + i * 2 * N + N);
    HWY_UNROLL(8)
    for (int g = 0; g < G; ++g) {
      const auto b = hn::Set(d, x[static_cast<std::size_t>(g) * x_row + i * x_col]);
      left[g] = hn::MulAdd(b, p0, left[g]);
      right[g] = hn::MulAdd(b, p1, right[g]);
    }
  }
  HWY_UNROLL(8)
  for (int g = 0; g < G; ++g) {
    hn::Store(left[g], d, y + static_cast<std::size_t>(g) * y_row);
    hn::Store(right[g], d, y + static_cast<std::size_t>(g) * y_row + N);
  }
}

// The same for any number of rows.
template <class D, class T = hn::TFromD<D>>
void MatrixTimesPanel(D d, const T* x, std::size_t rows, std::size_t x_row, std::size_t x_col,
                      const T* panel, std::size_t n, T* y, std::size_t y_row) {
  std::size_t g = 0;
  for (; g + 6 <= rows; g += 6) {
    RowsTimesPanel<6>(d, x + g * x_row, x_row, x_col, panel, n, y + g * y_row, y_row);
  }
  for (; g + 4 <= rows; g += 4) {
    RowsTimesPanel<4>(d, x + g * x_row, x_row, x_col, panel, n, y + g * y_row, y_row);
  }
  for (; g < rows; ++g) {
    RowsTimesPanel<1>(d, x + g * x_row, x_row, x_col, panel, n, y + g * y_row, y_row);
  }
}

template <class T>
class Many {
 public:
  explicit Many(const ManyTask<T>& task) : task_(task) {
    Allocate();
    ChooseShift(task.keys, key_shift_);
    ChooseShift(task.values, value_shift_);
    for (std::size_t q = 0; q < q_; ++q) {
      const T* a = task.queries.data + q * static_cast<std::size_t>(task.queries.stride);
      T* column = packed_queries_ + q / panel_ * panel_ * dk_ + q % panel_;
      for (std::size_t j = 0; j < dk_; ++j) column[j * panel_] = a[j];
    }
  }

  void Run(ManySums& out) {
    const auto n = static_cast<std::size_t>(task_.keys.n);
    for (std::size_t first = 0; first < n; first += kTokens) {
      const std::size_t m = std::min(kTokens, n - first);
      PackKeys(first, m);
      for (std::size_t q = 0; q < q_padded_; q += panel_) {
        MatrixTimesPanel(D(), keys_, m, dk_, 1, packed_queries_ + q * dk_, dk_, scores_ + q,
                         q_padded_);
      }
      if (task_.bias != nullptr) AddBias(first, m);
      for (std::size_t q = 0; q < q_padded_; q += hn::Lanes(D())) Weigh(q, m);
      AddValues(first, m);
    }
    Finish(out);
  }

 private:
  using D = hn::ScalableTag<T>;

  void Allocate() {
    panel_ = 2 * hn::Lanes(D());
    const auto pad = [this](Index n) {
      return (static_cast<std::size_t>(n) + panel_ - 1) / panel_ * panel_;
    };
    q_ = static_cast<std::size_t>(task_.queries.d > 0 ? task_.queries.n : 0);
    dk_ = static_cast<std::size_t>(task_.keys.d);
    dv_ = static_cast<std::size_t>(task_.values.d);
    q_padded_ = pad(task_.queries.n);
    const std::size_t dk = pad(task_.keys.d), dv = pad(task_.values.d);
    const std::size_t wide = sizeof(double) / sizeof(T);
    const std::size_t total = dk + dv + q_padded_ * dk + kTokens * dk + kTokens * panel_ +
                              kTokens * q_padded_ + q_padded_ * panel_ + q_padded_ +
                              (q_padded_ + q_padded_ * dv) * wide;
    block_ = hwy::AllocateAligned<T>(total);
    std::fill_n(block_.get(), total, T(0));
    T* p = block_.get();
    const auto take = [&p](std::size_t size) { return (p += size) - size; };
    key_shift_ = take(dk);
    value_shift_ = take(dv);
    packed_queries_ = take(q_padded_ * dk);
    keys_ = take(kTokens * dk);
    value_panel_ = take(kTokens * panel_);
    scores_ = take(kTokens * q_padded_);
    tile_sum_ = take(q_padded_ * panel_);
    max_ = take(q_padded_);
    std::fill_n(max_, q_padded_, -std::numeric_limits<T>::infinity());
    norm_ = reinterpret_cast<double*>(take(q_padded_ * wide));
    sum_ = reinterpret_cast<double*>(take(q_padded_ * dv * wide));
    dv_padded_ = dv;
  }

  void PackKeys(std::size_t first, std::size_t m) {
    for (std::size_t l = 0; l < m; ++l) {
      const T* x = task_.keys.data + (first + l) * static_cast<std::size_t>(task_.keys.stride);
      for (std::size_t j = 0; j < dk_; ++j) keys_[l * dk_ + j] = x[j] - key_shift_[j];
    }
  }

  void AddBias(std::size_t first, std::size_t m) {
    for (std::size_t l = 0; l < m; ++l) {
      for (std::size_t q = 0; q < q_padded_; ++q)
        scores_[l * q_padded_ + q] += task_.bias[first + l];
    }
  }

  // Scores of one vector of queries to weights relative to their running maxima.
  void Weigh(std::size_t q, std::size_t m) {
    const D d;
    const std::size_t N = hn::Lanes(d);
    T* s = scores_ + q;
    const auto old_max = hn::Load(d, max_ + q);
    auto max = old_max;
    for (std::size_t l = 0; l < m; ++l) max = hn::Max(max, hn::Load(d, s + l * q_padded_));
    hn::Store(max, d, max_ + q);
    if (!hn::AllTrue(d, hn::Eq(max, old_max))) {
      HWY_ALIGN T before[hn::MaxLanes(d)];
      hn::Store(old_max, d, before);
      for (std::size_t i = 0; i < N; ++i) Raise(q + i, before[i], max_[q + i]);
    }
    // All masked so far: subtract 0, so that -inf stays -inf and weighs 0.
    const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity());
    const auto base = hn::IfThenZeroElse(hn::Eq(max, lowest), max);
    auto norm = hn::Zero(d);
    for (std::size_t l = 0; l < m; ++l) {
      const auto w =
          simd::HWY_NAMESPACE::ExpOfNonPositive(d, hn::Sub(hn::Load(d, s + l * q_padded_), base));
      hn::Store(w, d, s + l * q_padded_);
      norm = hn::Add(norm, w);
    }
    HWY_ALIGN T norms[hn::MaxLanes(d)];
    hn::Store(norm, d, norms);
    for (std::size_t i = 0; i < N; ++i) norm_[q + i] += static_cast<double>(norms[i]);
  }

  void Raise(std::size_t q, T from, T to) {
    if (norm_[q] == 0 || from == to) return;
    const double factor = std::exp(static_cast<double>(from) - static_cast<double>(to));
    norm_[q] *= factor;
    for (std::size_t j = 0; j < dv_padded_; ++j) sum_[q * dv_padded_ + j] *= factor;
  }

  // sum[q,:] += sum_l w[l,q] (v_l - c), one panel of columns at a time.
  void AddValues(std::size_t first, std::size_t m) {
    for (std::size_t j0 = 0; j0 < dv_; j0 += panel_) {
      const std::size_t columns = std::min(panel_, dv_ - j0);
      for (std::size_t l = 0; l < m; ++l) {
        const T* v =
            task_.values.data + (first + l) * static_cast<std::size_t>(task_.values.stride) + j0;
        for (std::size_t j = 0; j < columns; ++j) {
          value_panel_[l * panel_ + j] = v[j] - value_shift_[j0 + j];
        }
      }
      MatrixTimesPanel(D(), scores_, q_, 1, q_padded_, value_panel_, m, tile_sum_, panel_);
      for (std::size_t q = 0; q < q_; ++q) {
        double* sum = sum_ + q * dv_padded_ + j0;
        for (std::size_t j = 0; j < panel_; ++j) {
          sum[j] += static_cast<double>(tile_sum_[q * panel_ + j]);
        }
      }
    }
  }

  void Finish(ManySums& out) {
    for (std::size_t q = 0; q < q_; ++q) {
      const T* a = task_.queries.data + q * static_cast<std::size_t>(task_.queries.stride);
      double offset = 0;
      for (std::size_t j = 0; j < dk_; ++j) {
        offset += static_cast<double>(a[j]) * static_cast<double>(key_shift_[j]);
      }
      const auto i = static_cast<Index>(q);
      out.norm[i] = norm_[q];
      out.max[i] = static_cast<double>(max_[q]) + offset;
      for (std::size_t j = 0; j < dv_; ++j) {
        out.sum(i, static_cast<Index>(j)) =
            sum_[q * dv_padded_ + j] + norm_[q] * static_cast<double>(value_shift_[j]);
      }
    }
  }

  const ManyTask<T>& task_;
  hwy::AlignedFreeUniquePtr<T[]> block_;
  std::size_t panel_, q_, q_padded_, dk_, dv_, dv_padded_;
  T *key_shift_, *value_shift_;
  T* packed_queries_;  // [panels,dk,panel]
  T* keys_;            // [kTokens,dk] shifted
  T* value_panel_;     // [kTokens,panel] shifted
  T* scores_;          // [kTokens,q_padded], then weights
  T* tile_sum_;        // [q,panel]
  T* max_;             // [q_padded]
  double *norm_, *sum_;
};

void ManyFloat(const ManyTask<float>& task, ManySums& sums) { Many<float>(task).Run(sums); }
void ManyDouble(const ManyTask<double>& task, ManySums& sums) { Many<double>(task).Run(sums); }

}  // namespace esscher::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher::detail {

HWY_EXPORT(ManyFloat);
HWY_EXPORT(ManyDouble);

void run_many(const ManyTask<float>& task, ManySums& sums) {
  ESSCHER_DISPATCH(ManyFloat)(task, sums);
}

void run_many(const ManyTask<double>& task, ManySums& sums) {
  ESSCHER_DISPATCH(ManyDouble)(task, sums);
}

}  // namespace esscher::detail
#endif
