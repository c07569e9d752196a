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
#include "esscher/tilt/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using detail::choose_shift;
using detail::ManySums;
using detail::ManyTask;

// Tokens per tile, which is the number of terms of sums in T.
inline constexpr std::size_t kTokens = 96;

// One matrix of tokens, read in place unless it has a shift.
template <class T>
struct TokenSide {
  Rows<T> rows;
  T* shift;          // [d]
  T* copy;           // [kTokens,d] shifted
  bool any = false;  // whether the shift is not 0

  // The tokens l of the tile as x(l, j).
  Entries<T> tile(std::size_t first, std::size_t m) const {
    const auto stride = static_cast<std::size_t>(rows.stride), d = static_cast<std::size_t>(rows.d);
    const T* p = rows.data + first * stride;
    if (!any) return {p, stride, 1};
    for (std::size_t l = 0; l < m; ++l, p += stride) {
      const hn::ScalableTag<T> tag;
      std::size_t j = 0;
      for (; j + hn::Lanes(tag) <= d; j += hn::Lanes(tag)) {
        hn::StoreU(hn::Sub(hn::LoadU(tag, p + j), hn::LoadU(tag, shift + j)), tag,
                   copy + l * d + j);
      }
      for (; j < d; ++j) copy[l * d + j] = p[j] - shift[j];
    }
    return {copy, d, 1};
  }

  // Fetches `count` rows from `first` on. Inlined, because GCC deletes calls of a function that
  // only prefetches.
  HWY_INLINE void fetch(std::size_t first, std::size_t count) const {
    constexpr std::size_t kLine = 64 / sizeof(T);
    const std::size_t end = std::min(first + count, static_cast<std::size_t>(rows.n));
    for (std::size_t l = first; l < end; ++l) {
      const T* from = rows.data + l * static_cast<std::size_t>(rows.stride);
      for (std::size_t j = 0; j < static_cast<std::size_t>(rows.d); j += kLine) {
        hwy::Prefetch(from + j);
      }
    }
  }
};

// Each lane holds one query everywhere. Two vectors of queries are a panel.
template <class T>
class Many {
 public:
  explicit Many(const ManyTask<T>& task) : task_(task) {
    with_product_ = task.r.n > 0;
    one_matrix_ = task.keys.data == task.values.data && task.keys.stride == task.values.stride &&
                  task.keys.d == task.values.d;
    allocate();
    keys_.any = choose_shift<16>(task.keys, keys_.shift);
    values_.any = choose_shift<16>(task.values, values_.shift);
    pack(task.queries, packed_queries_);
    if (with_product_) pack(task.r, packed_r_);
  }

  void run(ManySums& out) {
    const auto n = static_cast<std::size_t>(task_.keys.n);
    for (std::size_t first = 0; first < n; first += kTokens) {
      const std::size_t m = std::min(kTokens, n - first);
      const Entries<T> keys = keys_.tile(first, m);
      const Entries<T> values = one_matrix_ ? keys : values_.tile(first, m);
      bool fetched = false;
      for (std::size_t q = 0; q < q_padded_; q += panel_) {
        const std::size_t seen = visible(first, q + panel_ - 1, m);
        if (seen == 0) continue;
        score(keys, first, seen, q, !fetched);
        fetched = true;
        if (visible(first, q, m) < seen) hide(first, seen, q);
        if (with_product_) {
          matrix_times_panel(D(), values, seen, packed_r_ + q * dv_, dv_, t_);
          add<true>(values, seen, q);
        } else {
          add<false>(values, seen, q);
        }
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
    const std::size_t wide = sizeof(double) / sizeof(T), products = with_product_ ? 1 : 0;
    const std::size_t rows = pad((kTokens + 1) * (dk_ + dv_)) + panel_ * kTokens * (1 + products) +
                             panel_ * dv_ + q_padded_ * (dk_ + dv_ * products);
    const std::size_t doubles = panel_ + q_padded_ * (2 + dv_ * (1 + products));
    const std::size_t total = rows + 3 * q_padded_ + wide * doubles;
    block_ = hwy::AllocateAligned<T>(total);
    detail::Arena<T> arena(block_.get(), total);
    const auto take_doubles = [&](std::size_t n) {
      return reinterpret_cast<double*>(arena.take_zero(n * wide));
    };
    factor_ = take_doubles(panel_);
    norm_ = take_doubles(q_padded_);
    k_sum_ = take_doubles(q_padded_);
    sum_ = take_doubles(q_padded_ * dv_);
    product_ = take_doubles(q_padded_ * dv_ * products);
    weights_ = arena.take(panel_ * kTokens);
    t_ = arena.take(panel_ * kTokens * products);
    tile_sum_ = arena.take(panel_ * dv_);
    packed_queries_ = arena.take_zero(q_padded_ * dk_);
    packed_r_ = arena.take_zero(q_padded_ * dv_ * products);
    max_ = arena.take(q_padded_);
    std::fill_n(max_, q_padded_, -std::numeric_limits<T>::infinity());
    f_ = arena.take_zero(q_padded_);
    f_known_ = arena.take_zero(q_padded_);
    keys_ = {task_.keys, arena.take(dk_), arena.take(kTokens * dk_)};
    values_ = {task_.values, arena.take(dv_), arena.take(kTokens * dv_)};
  }

  void pack(const Rows<T>& from, T* to) const {
    const auto d = static_cast<std::size_t>(from.d);
    for (std::size_t q = 0; q < q_; ++q) {
      const T* a = from.data + q * static_cast<std::size_t>(from.stride);
      T* column = to + q / panel_ * panel_ * d + q % panel_;
      for (std::size_t j = 0; j < d; ++j) column[j * panel_] = a[j];
    }
  }

  // How many of the m tokens from `first` on query q sees.
  [[nodiscard]] std::size_t visible(std::size_t first, std::size_t q, std::size_t m) const {
    const Index seen = task_.visible + static_cast<Index>(q) - static_cast<Index>(first);
    return static_cast<std::size_t>(std::clamp<Index>(seen, 0, static_cast<Index>(m)));
  }

  // The scores of the panel on the tile. The first panel also fetches the next tile, a few tokens at
  // a time, so that memory is busy all the time.
  void score(const Entries<T>& keys, std::size_t first, std::size_t m, std::size_t q, bool fetch) {
    const T* panel = packed_queries_ + q * dk_;
    if (fetch) {
      matrix_times_panel(D(), keys, m, panel, dk_, weights_,
                         [&](std::size_t g, std::size_t count) HWY_ATTR {
                           keys_.fetch(first + kTokens + g, count);
                           if (!one_matrix_) values_.fetch(first + kTokens + g, count);
                         });
    } else {
      matrix_times_panel(D(), keys, m, panel, dk_, weights_);
    }
    if (task_.bias == nullptr) return;
    for (std::size_t l = 0; l < m; ++l) {
      for (std::size_t i = 0; i < panel_; ++i) weights_[l * panel_ + i] += task_.bias[first + l];
    }
  }

  // Gives the tokens that a query does not see the score -inf.
  void hide(std::size_t first, std::size_t m, std::size_t q) {
    const D d;
    const std::size_t N = hn::Lanes(d);
    const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity());
    for (std::size_t l = visible(first, q, m); l < m; ++l) {
      // Lane i belongs to query q + i, which sees token first + l if i > last.
      const Index last = static_cast<Index>(first + l) - task_.visible - static_cast<Index>(q);
      for (std::size_t i = 0; i < panel_; i += N) {
        T* s = weights_ + l * panel_ + i;
        const auto sees = hn::Gt(hn::Iota(d, static_cast<T>(i)), hn::Set(d, static_cast<T>(last)));
        hn::Store(hn::IfThenElse(sees, hn::Load(d, s), lowest), d, s);
      }
    }
  }

  // Turns the scores of the panel at q into weights and adds the tile to its sums.
  template <bool kProduct>
  void add(const Entries<T>& values, std::size_t m, std::size_t q) {
    weigh<kProduct>(q, 0, m);
    weigh<kProduct>(q, hn::Lanes(D()), m);
    const Entries<T> columns{values.p, 1, values.row};
    matrix_times_panel(D(), columns, dv_, weights_, m, tile_sum_);
    add_panel(sum_ + q * dv_, factor_, tile_sum_, dv_);
    if (!kProduct) return;
    matrix_times_panel(D(), columns, dv_, t_, m, tile_sum_);
    add_panel(product_ + q * dv_, factor_, tile_sum_, dv_);
  }

  // Turns the scores of vector i of the panel into weights w relative to their running maxima and,
  // with kProduct, t into k = w (t - f), where f is the mean of t over the first tile that weighs
  // anything.
  template <bool kProduct>
  void weigh(std::size_t q, std::size_t i, std::size_t m) {
    const D d;
    T* HWY_RESTRICT w = weights_ + i;
    T* HWY_RESTRICT t = t_ + i;
    q += i;
    const auto old_max = hn::Load(d, max_ + q);
    auto max = old_max;
    for (std::size_t l = 0; l < m; ++l) max = hn::Max(max, hn::Load(d, w + l * panel_));
    hn::Store(max, d, max_ + q);
    // While all tokens are masked, 0 is subtracted, so that -inf stays -inf and weighs 0.
    const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity());
    const auto base = hn::IfThenZeroElse(hn::Eq(max, lowest), max);
    auto norm = hn::Zero(d), t_sum = hn::Zero(d);
    for (std::size_t l = 0; l < m; ++l) {
      const auto x = exp_of_nonpositive(d, hn::Sub(hn::Load(d, w + l * panel_), base));
      hn::Store(x, d, w + l * panel_);
      norm = hn::Add(norm, x);
      if (kProduct) t_sum = hn::MulAdd(x, hn::Load(d, t + l * panel_), t_sum);
    }
    set_factors(hn::Sub(old_max, base), i);
    add_scalars(norm_ + q, norm, i);
    if (!kProduct) return;
    const auto unknown =
        hn::And(hn::Eq(hn::Load(d, f_known_ + q), hn::Zero(d)), hn::Gt(norm, hn::Zero(d)));
    const auto f = hn::IfThenElse(unknown, hn::Div(t_sum, norm), hn::Load(d, f_ + q));
    hn::Store(f, d, f_ + q);
    hn::Store(hn::IfThenElse(unknown, hn::Set(d, T(1)), hn::Load(d, f_known_ + q)), d,
              f_known_ + q);
    auto k_sum = hn::Zero(d);
    for (std::size_t l = 0; l < m; ++l) {
      const auto below = hn::Sub(hn::Load(d, t + l * panel_), f);
      const auto k = hn::Mul(hn::Load(d, w + l * panel_), below);
      hn::Store(k, d, t + l * panel_);
      k_sum = hn::Add(k_sum, k);
    }
    add_scalars(k_sum_ + q, k_sum, i);
  }

  // factor[i ..] = e^{fall}, by which the sums so far shrink. fall is -inf for a query without
  // weight so far, whose sums are 0.
  void set_factors(hn::Vec<D> fall, std::size_t i) {
    const D d;
    double* to = factor_ + i;
    if (hn::AllTrue(d, hn::Eq(fall, hn::Zero(d)))) {
      std::fill_n(to, hn::Lanes(d), 1.0);
      return;
    }
    HWY_ALIGN T falls[hn::MaxLanes(d)];
    hn::Store(fall, d, falls);
    const hn::ScalableTag<double> dd;
    for (std::size_t j = 0; j < hn::Lanes(d); j += hn::Lanes(dd)) {
      hn::Store(exp_of_nonpositive(dd, wide(falls + j)), dd, to + j);
    }
  }

  // sum[..] = factor[i ..] * sum[..] + part
  void add_scalars(double* sum, hn::Vec<D> part, std::size_t i) {
    const D d;
    HWY_ALIGN T parts[hn::MaxLanes(d)];
    hn::Store(part, d, parts);
    const hn::ScalableTag<double> dd;
    for (std::size_t j = 0; j < hn::Lanes(d); j += hn::Lanes(dd)) {
      const auto f = hn::Load(dd, factor_ + i + j);
      hn::Store(hn::MulAdd(f, hn::Load(dd, sum + j), wide(parts + j)), dd, sum + j);
    }
  }

  static HWY_INLINE auto wide(const T* from) {
    const hn::ScalableTag<double> dd;
    const hn::Rebind<T, decltype(dd)> narrow;
    if constexpr (sizeof(T) == 8) {
      return hn::Load(narrow, from);
    } else {
      return hn::PromoteTo(dd, hn::Load(narrow, from));
    }
  }

  void finish(ManySums& out) const {
    for (std::size_t q = 0; q < q_; ++q) {
      const auto i = static_cast<Index>(q);
      const T* a = task_.queries.data + i * task_.queries.stride;
      const double norm = norm_[q];
      out.norm[i] = norm;
      out.max[i] = static_cast<double>(max_[q]) + offset(a, keys_);
      for (std::size_t j = 0; j < dv_; ++j) {
        const auto c = static_cast<double>(values_.shift[j]);
        out.sum(i, static_cast<Index>(j)) = sum_[place(q, j)] + norm * c;
      }
      if (!with_product_) continue;
      const T* r = task_.r.data + i * task_.r.stride;
      out.t_sum[i] = k_sum_[q] + norm * (static_cast<double>(f_[q]) + offset(r, values_));
      const double gap = norm == 0 ? 0 : k_sum_[q] / norm;  // the mean of t, about f
      for (std::size_t j = 0; j < dv_; ++j) {
        out.product(i, static_cast<Index>(j)) = product_[place(q, j)] - gap * sum_[place(q, j)];
      }
    }
  }

  // <a, c>
  static double offset(const T* a, const TokenSide<T>& side) {
    double sum = 0;
    for (Index j = 0; j < side.rows.d; ++j) {
      sum += static_cast<double>(a[j]) * static_cast<double>(side.shift[j]);
    }
    return sum;
  }

  [[nodiscard]] std::size_t place(std::size_t q, std::size_t j) const {
    return q / panel_ * panel_ * dv_ + j * panel_ + q % panel_;
  }

  const ManyTask<T>& task_;
  bool with_product_, one_matrix_;
  hwy::AlignedFreeUniquePtr<T[]> block_;
  std::size_t panel_, q_, q_padded_, dk_, dv_;
  TokenSide<T> keys_, values_;
  T *packed_queries_, *packed_r_;  // [panels,d,panel]
  T *weights_, *t_;                // [kTokens,panel] of one panel: scores then weights; t then k
  T* tile_sum_;                    // [dv,panel]
  T *max_, *f_, *f_known_;         // [q_padded]
  double* factor_;                 // [panel] by which sums of this panel shrink in this tile
  double *norm_, *k_sum_;          // [q_padded]
  double *sum_, *product_;         // [panels,dv,panel]
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
