// Inner loops for short tokens. A tile of tokens is transposed, so that each lane holds one token.

#if defined(ESSCHER_TILT_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESSCHER_TILT_COLUMNS_INL_H_
#undef ESSCHER_TILT_COLUMNS_INL_H_
#else
#define ESSCHER_TILT_COLUMNS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "esscher/tilt/tilt.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A transposed tile: coordinate j of token l is at p + j * stride + l, relative to the shift.
// Columns are aligned, and zero from the last token to the next multiple of kColumnUnit vectors.
template <class T>
struct Columns {
  T* p;
  std::size_t stride;
  std::size_t d;
};

// The number of vectors of tokens that column_dots takes at a time.
inline constexpr std::size_t kColumnUnit = 4;

#if HWY_TARGET == HWY_SCALAR
template <class T>
inline constexpr std::size_t kBlockLanes = 1;

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_blocks(D d, const T* p, std::size_t) {
  return hn::Load(d, p);
}

template <class D>
HWY_INLINE void transpose_blocks(D, hn::Vec<D>*) {}
#else
template <class T>
inline constexpr std::size_t kBlockLanes = 16 / sizeof(T);

// The vector whose 128-bit block b is p[b * step ..].
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_blocks(D d, const T* p, std::size_t step) {
  if constexpr (hn::MaxLanes(D()) <= kBlockLanes<T>) {
    return hn::LoadU(d, p);
  } else {
    const hn::Half<D> half;
    const std::size_t blocks = hn::Lanes(half) / kBlockLanes<T>;
    return hn::Combine(d, load_blocks(half, p + blocks * step, step), load_blocks(half, p, step));
  }
}

// Transposes the square of lanes of each 128-bit block: lane j of x[i] becomes lane i of x[j].
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose_blocks(D d, V* x) {
  const auto lower = [](auto tag, V a, V b) HWY_ATTR {
    return hn::BitCast(D(), hn::InterleaveLower(tag, hn::BitCast(tag, a), hn::BitCast(tag, b)));
  };
  const auto upper = [](auto tag, V a, V b) HWY_ATTR {
    return hn::BitCast(D(), hn::InterleaveUpper(tag, hn::BitCast(tag, a), hn::BitCast(tag, b)));
  };
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    const V a = x[0], b = x[1];
    x[0] = lower(d, a, b);
    x[1] = upper(d, a, b);
  } else {
    const hn::RepartitionToWide<D> wide;
    const V a = lower(d, x[0], x[1]), b = lower(d, x[2], x[3]);
    const V e = upper(d, x[0], x[1]), f = upper(d, x[2], x[3]);
    x[0] = lower(wide, a, b);
    x[1] = upper(wide, a, b);
    x[2] = lower(wide, e, f);
    x[3] = upper(wide, e, f);
  }
}
#endif

// s[l] = <a, x_l> and, with kPair, t[l] = <r, x_l>, from the vector at `first` on, for l < m
// rounded up to kColumnUnit vectors.
template <bool kPair, class D, class T = hn::TFromD<D>>
HWY_INLINE void column_dots(D d, Columns<T> x, std::size_t first, std::size_t m, const T* a,
                            const T* r, T* HWY_RESTRICT s, T* HWY_RESTRICT t) {
  const std::size_t N = hn::Lanes(d);
  for (std::size_t l = first; l < m; l += kColumnUnit * N) {
    hn::Vec<D> sum_a[kColumnUnit], sum_r[kColumnUnit];
    HWY_UNROLL(4)
    for (std::size_t u = 0; u < kColumnUnit; ++u) sum_a[u] = sum_r[u] = hn::Zero(d);
    for (std::size_t j = 0; j < x.d; ++j) {
      const T* p = x.p + j * x.stride + l;
      const auto a_j = hn::Set(d, a[j]), r_j = hn::Set(d, r[j]);
      HWY_UNROLL(4)
      for (std::size_t u = 0; u < kColumnUnit; ++u) {
        const auto x_u = hn::Load(d, p + u * N);
        sum_a[u] = hn::MulAdd(a_j, x_u, sum_a[u]);
        if (kPair) sum_r[u] = hn::MulAdd(r_j, x_u, sum_r[u]);
      }
    }
    HWY_UNROLL(4)
    for (std::size_t u = 0; u < kColumnUnit; ++u) {
      hn::Store(sum_a[u], d, s + l + u * N);
      if (kPair) hn::Store(sum_r[u], d, t + l + u * N);
    }
  }
}

// How far ahead of their use tokens are fetched. The fetch goes on past the last row, where the
// next prompt of a batch lies; a prefetch has no effect that the program could see. It gains a
// tenth of the time if the tokens come from memory and costs a twentieth if they are in cache.
inline constexpr std::uintptr_t kAheadBytes = 4096;

// Transposes the tokens first .. first + m of `rows`, relative to `shift` (zero beyond d), and
// takes their dot products, as column_dots does, while they are in registers.
template <bool kPair, class D, class T = hn::TFromD<D>>
HWY_INLINE void to_columns(D d, const Rows<T>& rows, std::size_t first, std::size_t m,
                           const T* shift, const T* a, const T* r, Columns<T> to, T* HWY_RESTRICT s,
                           T* HWY_RESTRICT t) {
  constexpr std::size_t kB = kBlockLanes<T>;
  const std::size_t N = hn::Lanes(d), stride = static_cast<std::size_t>(rows.stride);
  const T* p = rows.data + first * stride;
  // Blocks of columns may read past the end of a row, but not past the end of the last row.
  const std::size_t past = (to.d + kB - 1) / kB * kB - to.d;
  const std::size_t left = (static_cast<std::size_t>(rows.n) - first - 1) * stride;
  std::size_t l = 0;
  for (; l + N <= m && (l + N - 1) * stride + past <= left; l += N) {
    const auto ahead = reinterpret_cast<std::uintptr_t>(p + l * stride) + kAheadBytes;
    for (std::size_t b = 0; b < N * stride * sizeof(T); b += 64) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): may lie beyond the array, so no pointer sum
      hwy::Prefetch(reinterpret_cast<const char*>(ahead + b));
    }
    auto sum_a = hn::Zero(d), sum_r = hn::Zero(d);
    for (std::size_t j = 0; j < to.d; j += kB) {
      const auto c = load_blocks(d, shift + j, 0);
      hn::Vec<D> x[kB];
      HWY_UNROLL(4)
      for (std::size_t i = 0; i < kB; ++i) {
        x[i] = hn::Sub(load_blocks(d, p + (l + i) * stride + j, kB * stride), c);
      }
      transpose_blocks(d, x);
      HWY_UNROLL(4)
      for (std::size_t i = 0; i < kB; ++i) {
        if (j + i >= to.d) break;
        hn::Store(x[i], d, to.p + (j + i) * to.stride + l);
        sum_a = hn::MulAdd(hn::Set(d, a[j + i]), x[i], sum_a);
        if (kPair) sum_r = hn::MulAdd(hn::Set(d, r[j + i]), x[i], sum_r);
      }
    }
    hn::Store(sum_a, d, s + l);
    if (kPair) hn::Store(sum_r, d, t + l);
  }
  const std::size_t end = (m + kColumnUnit * N - 1) / (kColumnUnit * N) * (kColumnUnit * N);
  for (std::size_t j = 0; j < to.d; ++j) {
    T* column = to.p + j * to.stride;
    for (std::size_t i = l; i < m; ++i) column[i] = p[i * stride + j] - shift[j];
    std::fill(column + m, column + end, T(0));
  }
  column_dots<kPair>(d, to, l, m, a, r, s, t);
}

// sum[j] = sum_l w_l x_l[j] and, with kPair, product[j] = sum_l k_l x_l[j], for C columns from j
// on; w and k are zero from m to the next multiple of a vector.
template <std::size_t C, bool kPair, class D, class T = hn::TFromD<D>>
HWY_INLINE void sum_some_columns(D d, Columns<T> x, std::size_t m, std::size_t j, const T* w,
                                 const T* k, T* sum, T* product) {
  const std::size_t N = hn::Lanes(d);
  hn::Vec<D> sum_w[C], sum_k[C];
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < C; ++i) sum_w[i] = sum_k[i] = hn::Zero(d);
  for (std::size_t l = 0; l < m; l += N) {
    const auto w_l = hn::Load(d, w + l), k_l = kPair ? hn::Load(d, k + l) : w_l;
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < C; ++i) {
      const auto x_i = hn::Load(d, x.p + (j + i) * x.stride + l);
      sum_w[i] = hn::MulAdd(w_l, x_i, sum_w[i]);
      if (kPair) sum_k[i] = hn::MulAdd(k_l, x_i, sum_k[i]);
    }
  }
  for (std::size_t i = 0; i < C; ++i) {
    sum[j + i] = hn::GetLane(hn::SumOfLanes(d, sum_w[i]));
    if (kPair) product[j + i] = hn::GetLane(hn::SumOfLanes(d, sum_k[i]));
  }
}

// The same for all columns.
template <bool kPair, class D, class T = hn::TFromD<D>>
HWY_INLINE void sum_columns_of(D d, Columns<T> x, std::size_t m, const T* w, const T* k, T* sum,
                               T* product) {
  std::size_t j = 0;
  for (; j + 6 <= x.d; j += 6) sum_some_columns<6, kPair>(d, x, m, j, w, k, sum, product);
  for (; j + 4 <= x.d; j += 4) sum_some_columns<4, kPair>(d, x, m, j, w, k, sum, product);
  for (; j + 2 <= x.d; j += 2) sum_some_columns<2, kPair>(d, x, m, j, w, k, sum, product);
  if (j < x.d) sum_some_columns<1, kPair>(d, x, m, j, w, k, sum, product);
}

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
