#include "esscher/tilt/detail/leaf.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/simd/detail/dispatch.h"
#include "esscher/tilt/detail/arena.h"
#include "hwy/aligned_allocator.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/tilt/leaf.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h, so that each target gets its own bodies.
#include "esscher/simd/exp-inl.h"
#include "esscher/tilt/columns-inl.h"
#include "esscher/tilt/detail/shift.h"
#include "esscher/tilt/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

using detail::choose_shift;
using detail::LeafSums;
using detail::LeafTask;

// The largest number of tokens in a tile. Sums in T have at most this many terms, and the tile
// stays in cache between the dot products and the sums.
inline constexpr std::size_t kTile = 64;

// Long rows get tiles of about 2 KiB, so that dot products and sums alternate quickly and memory is
// idle for a shorter time. Measured per token at d = 64 from memory, on a busy machine: 31.9 ns
// with tiles of 2 KiB, 34.8 with 4 KiB, 33.4 with 8 KiB; 38 instead of 31 without prefetch.
inline std::size_t tile_tokens(std::size_t row_bytes) {
  return std::clamp<std::size_t>(2048 / row_bytes / 8 * 8, 8, kTile);
}

// Tokens of at most kShort coordinates are transposed. With N lanes each lane then adds one token
// in N, so a tile may hold N times as many tokens. 512 transposed tokens stay in cache.
inline constexpr std::size_t kShort = 8, kShortTile = 512;

// One matrix of the leaf, as the inner loops read it.
template <class T>
struct Side {
  Rows<T> rows;
  std::size_t width;  // d rounded up to whole vectors
  T* shift;           // [width], zero beyond d
  T* copy;            // [kTile,width], for rows whose last vector would pass the end of the array

  Tile<T> at(std::size_t first, std::size_t m) const {
    const auto stride = static_cast<std::size_t>(rows.stride), d = static_cast<std::size_t>(rows.d);
    const T* p = rows.data + first * stride;
    const std::size_t end = (static_cast<std::size_t>(rows.n) - 1) * stride + d;
    if ((first + m - 1) * stride + width <= end) return {p, stride};
    for (std::size_t l = 0; l < m; ++l) {
      std::copy_n(p + l * stride, d, copy + l * width);
      std::fill(copy + l * width + d, copy + (l + 1) * width, T(0));
    }
    return {copy, width};
  }

  // The rows of the tile that starts at `first`, if it is a whole tile. Rows shorter than a cache
  // line are left to the hardware prefetcher.
  Ahead ahead_of(std::size_t first, std::size_t tokens) const {
    const auto stride = static_cast<std::size_t>(rows.stride);
    const bool dense = rows.stride == rows.d && stride * sizeof(T) >= 64;
    if (!dense || first + tokens > static_cast<std::size_t>(rows.n)) return {};
    return {reinterpret_cast<const char*>(rows.data + first * stride), stride * sizeof(T)};
  }
};

template <class T>
class Leaf {
 public:
  Leaf(const LeafTask<T>& task, LeafSums& out) : task_(task), out_(out) {
    one_matrix_ = task.keys.data == task.values.data && task.keys.stride == task.values.stride &&
                  task.keys.d == task.values.d;
    const auto d = static_cast<std::size_t>(std::max(task.keys.d, task.values.d));
    short_ = one_matrix_ && d <= kShort && !task.second;
    tile_ = short_ ? std::min(kShortTile, kTile * hn::Lanes(D())) : tile_tokens(sizeof(T) * d);
    allocate();
    choose_shift(task.keys, keys_.shift);
    if (!one_matrix_) choose_shift(task.values, values_.shift);
    a_offset_ = dot(task.a, keys_.shift, task.keys.d);
    if (task.r != nullptr) r_offset_ = dot(task.r, values_.shift, task.values.d);
  }

  void run() {
    const auto n = static_cast<std::size_t>(task_.keys.n);
    for (std::size_t first = 0; first < n; first += tile_) {
      const std::size_t m = std::min(tile_, n - first);
      if (task_.r == nullptr) {
        run_tile<false>(first, m);
      } else {
        run_tile<true>(first, m);
      }
    }
    finish();
  }

 private:
  using D = hn::ScalableTag<T>;

  // All buffers are parts of one aligned block per thread, because a leaf may have only one token
  // and allocating many buffers would then take longer than the leaf.
  void allocate() {
    const std::size_t N = hn::Lanes(D());
    const auto pad = [N](std::size_t n) { return (n + N - 1) / N * N; };
    const std::size_t dk = pad(static_cast<std::size_t>(task_.keys.d));
    const std::size_t dv = pad(static_cast<std::size_t>(task_.values.d));
    // Padded, or buffers behind the first would not be aligned where a vector has more lanes than
    // what the tile is a multiple of.
    const std::size_t width = std::max(dk, dv), tile = pad(tile_) + kColumnUnit * N;
    const std::size_t rows = short_ ? 0 : tile_;
    const std::size_t second = task_.second ? width * width : 0;
    const std::size_t total = width * (8 + 2 * rows) + 3 * tile + second +
                              (2 * width + second) * 8 / sizeof(T) + 64 + (short_ ? dk * tile : 0);
    static thread_local hwy::AlignedFreeUniquePtr<T[]> block;
    static thread_local std::size_t capacity = 0;
    if (capacity < total) {
      block = hwy::AllocateAligned<T>(total);
      capacity = total;
    }
    detail::Arena<T> arena(block.get(), total);
    keys_ = {task_.keys, dk, arena.take_zero(dk), arena.take(rows * dk)};
    values_ = {task_.values, dv, arena.take_zero(dv), arena.take(rows * dv)};
    if (one_matrix_) values_.shift = keys_.shift;
    a_ = arena.take_zero(dk);
    std::copy_n(task_.a, task_.keys.d, a_);
    r_ = arena.take_zero(dv);
    if (task_.r != nullptr) std::copy_n(task_.r, task_.values.d, r_);
    s_ = arena.take(tile);
    t_ = arena.take(tile);
    k_ = arena.take(tile);
    x_ = task_.of_keys ? &keys_ : &values_;
    if (short_) columns_ = {arena.take(dk * tile), tile, static_cast<std::size_t>(task_.keys.d)};
    tile_sum_ = arena.take_zero(width);
    tile_product_ = arena.take_zero(width);
    tile_second_ = arena.take(second);
    arena.align(2 * N);  // doubles like vectors of doubles
    auto* wide = reinterpret_cast<double*>(arena.take((2 * width + second) * 8 / sizeof(T)));
    std::fill_n(wide, 2 * width + second, 0.0);
    sum_ = wide;
    product_ = wide + width;
    second_ = wide + 2 * width;
  }

  static double dot(const T* a, const T* b, Index d) {
    double sum = 0;
    for (Index j = 0; j < d; ++j) sum += static_cast<double>(a[j]) * static_cast<double>(b[j]);
    return sum;
  }

  template <bool kProduct>
  void run_tile(std::size_t first, std::size_t m) {
    const D d;
    if (short_) {
      to_columns<kProduct>(d, task_.keys, first, m, keys_.shift, a_, r_, columns_, s_, t_);
      if (!finish_scores<kProduct>(first, m)) return;
      sum_columns_of<kProduct>(d, columns_, m, s_, k_, tile_sum_, tile_product_);
      add_tile<kProduct>();
      return;
    }
    const Tile<T> keys = keys_.at(first, m);
    const Tile<T> values = one_matrix_ ? keys : values_.at(first, m);
    // These rows are fetched during the dot products and during the sums.
    const Ahead then = one_matrix_ ? Ahead() : keys_.ahead_of(first + tile_, tile_);
    const Ahead later = (one_matrix_ ? keys_ : values_).ahead_of(first + tile_, tile_);
    constexpr int kMany = 32 / sizeof(T), kFew = 4;
    if (kProduct && one_matrix_) {
      dots<kFew, true>(d, keys, m, keys_.width, keys_.shift, a_, r_, s_, t_, then);
    } else {
      dots<kMany, false>(d, keys, m, keys_.width, keys_.shift, a_, a_, s_, s_, then);
      if (kProduct) {
        dots<kMany, false>(d, values, m, values_.width, values_.shift, r_, r_, t_, t_, Ahead());
      }
    }
    if (!finish_scores<kProduct>(first, m)) return;
    const Tile<T> x = task_.of_keys ? keys : values;
    sum_rows<kProduct>(d, x, m, x_->width, x_->shift, s_, k_, tile_sum_, tile_product_, later);
    add_tile<kProduct>();
    if (task_.second) add_second(x, m);
  }

  // Adds the sums of the tile, in T, to those of the leaf, in double.
  template <bool kProduct>
  void add_tile() {
    add_to(sum_, tile_sum_, x_->width);
    if (!kProduct) return;
    add_to(product_, tile_product_, x_->width);
    add_to(product_, tile_sum_, x_->width, f_tile_ - f_first_);
  }

  // Turns dot products into scores and scores into weights. False if the whole tile weighs nothing.
  template <bool kProduct>
  bool finish_scores(std::size_t first, std::size_t m) {
    if (task_.bias != nullptr) {
      for (std::size_t l = 0; l < m; ++l) s_[l] += task_.bias[first + l];
    }
    for (std::size_t l = m; l < m + hn::Lanes(D()); ++l) {  // lanes past the end weigh nothing
      s_[l] = -std::numeric_limits<T>::infinity();
      t_[l] = 0;
    }
    return weigh<kProduct>(m);
  }

  // Turns scores into weights w = e^{s - max} and makes k = w (t - f), where f is the mean of t
  // over the tile, so that the sums in T are centred. False if the whole tile weighs nothing.
  template <bool kProduct>
  bool weigh(std::size_t m) {
    const D d;
    const std::size_t N = hn::Lanes(d);
    T* HWY_RESTRICT s = s_;
    T* HWY_RESTRICT t = t_;
    T* HWY_RESTRICT ks = k_;
    auto max_v = hn::Load(d, s);
    for (std::size_t l = N; l < m; l += N) max_v = hn::Max(max_v, hn::Load(d, s + l));
    const T tile_max = hn::GetLane(hn::MaxOfLanes(d, max_v));
    if (tile_max == -std::numeric_limits<T>::infinity()) return false;
    if (!(tile_max <= max_)) raise(tile_max);  // true for NaN too, which thus reaches the result
    const auto max_l = hn::Set(d, max_);
    auto norm_v = hn::Zero(d), t_v = hn::Zero(d);
    for (std::size_t l = 0; l < m; l += N) {
      const auto w = exp_of_nonpositive(d, hn::Sub(hn::Load(d, s + l), max_l));
      hn::Store(w, d, s + l);
      norm_v = hn::Add(norm_v, w);
      if (kProduct) t_v = hn::MulAdd(w, hn::Load(d, t + l), t_v);
    }
    const T norm = hn::GetLane(hn::SumOfLanes(d, norm_v));
    if (norm == 0) return false;
    norm_ += static_cast<double>(norm);
    if (kProduct) {
      const T f = hn::GetLane(hn::SumOfLanes(d, t_v)) / norm;
      const auto f_v = hn::Set(d, f);
      auto sum_k = hn::Zero(d);
      for (std::size_t l = 0; l < m; l += N) {
        const auto k = hn::Mul(hn::Load(d, s + l), hn::Sub(hn::Load(d, t + l), f_v));
        hn::Store(k, d, ks + l);
        sum_k = hn::Add(sum_k, k);
      }
      f_tile_ = static_cast<double>(f);
      if (std::isnan(f_first_)) f_first_ = f_tile_;
      t_sum_ += f_tile_ * static_cast<double>(norm);
      k_sum_ += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum_k)));
    }
    return true;
  }

  void raise(T max) {
    const double factor = norm_ == 0 ? 1 : std::exp(static_cast<double>(max_) - max);
    norm_ *= factor;
    t_sum_ *= factor;
    k_sum_ *= factor;
    for (std::size_t j = 0; j < x_->width; ++j) sum_[j] *= factor;
    for (std::size_t j = 0; j < x_->width; ++j) product_[j] *= factor;
    if (task_.second) {
      for (std::size_t j = 0; j < x_->width * x_->width; ++j) second_[j] *= factor;
    }
    max_ = max;
  }

  // second += sum_l w_l (x_l - c)(x_l - c)'
  void add_second(Tile<T> x, std::size_t m) {
    const D d;
    const std::size_t N = hn::Lanes(d), width = x_->width,
                      dim = static_cast<std::size_t>(x_->rows.d);
    std::fill_n(tile_second_, dim * width, T(0));
    for (std::size_t l = 0; l < m; ++l) {
      const T* p = x.p + l * x.stride;
      for (std::size_t i = 0; i < dim; ++i) {
        const auto w = hn::Set(d, s_[l] * (p[i] - x_->shift[i]));
        for (std::size_t j = 0; j < width; j += N) {
          const auto centred = hn::Sub(hn::LoadU(d, p + j), hn::Load(d, x_->shift + j));
          T* row = tile_second_ + i * width + j;
          hn::Store(hn::MulAdd(w, centred, hn::Load(d, row)), d, row);
        }
      }
    }
    for (std::size_t i = 0; i < dim * width; ++i)
      second_[i] += static_cast<double>(tile_second_[i]);
  }

  // Makes the state from sums about the shift. k_sum is what rounding left of sum w (t - f) = 0;
  // subtracting k_sum times the mean from the product centres it exactly in x.
  void finish() {
    const auto dim = static_cast<std::size_t>(x_->rows.d);
    out_.max = norm_ == 0 ? -std::numeric_limits<double>::infinity()
                          : static_cast<double>(max_) + a_offset_;
    out_.norm = norm_;
    out_.t_sum = task_.r == nullptr ? 0 : t_sum_ + norm_ * r_offset_;
    const double f = norm_ == 0 ? 0 : t_sum_ / norm_;
    for (std::size_t j = 0; j < dim; ++j) {
      out_.sum[j] = sum_[j] + norm_ * static_cast<double>(x_->shift[j]);
      if (task_.r != nullptr) {
        out_.product[j] = norm_ == 0 ? 0 : product_[j] + (f_first_ - f - k_sum_ / norm_) * sum_[j];
      }
    }
    if (!task_.second) return;
    for (std::size_t i = 0; i < dim; ++i) {
      for (std::size_t j = 0; j < dim; ++j) {
        out_.second[i * dim + j] =
            norm_ == 0 ? 0 : second_[i * x_->width + j] - sum_[i] * (sum_[j] / norm_);
      }
    }
  }

  const LeafTask<T>& task_;
  LeafSums& out_;
  bool one_matrix_, short_;
  std::size_t tile_;
  Side<T> keys_, values_;
  const Side<T>* x_;
  T *a_, *r_;       // [width] padded with zeros
  T *s_, *t_, *k_;  // [kTile] scores then weights, t, w (t - f)
  Columns<T> columns_;
  T *tile_sum_, *tile_product_, *tile_second_;
  double *sum_, *product_, *second_;  // about the shift, relative to max_
  double a_offset_ = 0, r_offset_ = 0;
  T max_ = -std::numeric_limits<T>::infinity();
  double norm_ = 0, t_sum_ = 0, k_sum_ = 0, f_tile_ = 0;
  double f_first_ = std::numeric_limits<double>::quiet_NaN();
};

template <class T>
void run_leaf_kernel(const LeafTask<T>& task, LeafSums& sums) {
  Leaf<T>(task, sums).run();
}

void leaf_float(const LeafTask<float>& task, LeafSums& sums) { run_leaf_kernel(task, sums); }
void leaf_double(const LeafTask<double>& task, LeafSums& sums) { run_leaf_kernel(task, sums); }
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {
namespace detail {

HWY_EXPORT(leaf_float);
HWY_EXPORT(leaf_double);

void run_leaf(const LeafTask<float>& task, LeafSums& sums) {
  ESSCHER_DISPATCH(leaf_float)(task, sums);
}

void run_leaf(const LeafTask<double>& task, LeafSums& sums) {
  ESSCHER_DISPATCH(leaf_double)(task, sums);
}

template <class T>
TiltState leaf_state(const LeafTask<T>& task) {
  const Index d = task.of_keys ? task.keys.d : task.values.d;
  TiltState state = TiltState::neutral(d, task.r != nullptr, task.second);
  state.count = task.keys.n;
  if (task.keys.n == 0) return state;
  LeafSums sums{0, 0, 0, state.sum.data(), state.product.data(), state.second.data()};
  run_leaf(task, sums);
  state.max = sums.max;
  state.norm = sums.norm;
  state.t_sum = sums.t_sum;
  return state;
}

template TiltState leaf_state(const LeafTask<float>&);
template TiltState leaf_state(const LeafTask<double>&);

}  // namespace detail

std::string tilt_target() { return simd::active_target(); }

}  // namespace esscher
#endif
