// Inner loops over one tile of tokens: shifted dot products and weighted sums of rows.

#if defined(ESSCHER_TILT_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESSCHER_TILT_TILE_INL_H_
#undef ESSCHER_TILT_TILE_INL_H_
#else
#define ESSCHER_TILT_TILE_INL_H_
#endif

#include <cstddef>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Row l is at p + l * stride. Each row may be read up to the next multiple of the vector size.
template <class T>
struct Tile {
  const T* p;
  std::size_t stride;
};

// The memory to fetch in the meantime: rows of the next tile, which lie one after the other.
struct Ahead {
  const char* p = nullptr;  // null: nothing
  std::size_t row = 0;      // bytes

  HWY_INLINE void fetch(std::size_t l, std::size_t rows) const {
    if (p == nullptr) return;
    for (std::size_t b = l * row; b < (l + rows) * row; b += 64) hwy::Prefetch(p + b);
  }
};

#if HWY_TARGET != HWY_SCALAR
// Adds the 128-bit blocks of v.
template <class D, class V>
HWY_INLINE auto sum_blocks(D d, V v) {
  if constexpr (hn::MaxLanes(d) * sizeof(hn::TFromD<D>) <= 16) {
    return v;
  } else {
    const hn::Half<D> dh;
    return sum_blocks(dh, hn::Add(hn::LowerHalf(dh, v), hn::UpperHalf(dh, v)));
  }
}
#endif

// out[g] = sum of the lanes of v[g], for as many vectors as one 128-bit block has lanes.
template <class D, class V>
HWY_INLINE void store_lane_sums([[maybe_unused]] D d, const V* v, hn::TFromD<D>* out) {
  using T = hn::TFromD<D>;
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t g = 0; g < 16 / sizeof(T); ++g) out[g] = hn::GetLane(v[g]);
#else
  const hn::CappedTag<T, 16 / sizeof(T)> block;
  const auto pair = [d](V x, V y) HWY_ATTR {
    return hn::Add(hn::InterleaveLower(d, x, y), hn::InterleaveUpper(d, x, y));
  };
  if constexpr (sizeof(T) == 8) {
    hn::StoreU(sum_blocks(d, pair(v[0], v[1])), block, out);
  } else {
    const hn::RepartitionToWide<D> wide;
    const auto v01 = hn::BitCast(wide, pair(v[0], v[1]));
    const auto v23 = hn::BitCast(wide, pair(v[2], v[3]));
    const auto low = hn::BitCast(d, hn::InterleaveLower(wide, v01, v23));
    const auto high = hn::BitCast(d, hn::InterleaveUpper(wide, v01, v23));
    hn::StoreU(sum_blocks(d, hn::Add(low, high)), block, out);
  }
#endif
}

// s[g] = <a, x_g - c>, and with kPair t[g] = <r, x_g - c>, for the G rows that p points to. Rows
// are read one after the other, although c and a are then loaded G times, because memory serves
// sequential reads better than jumps between rows (31 against 33 ns per token at d = 64).
template <int G, bool kPair, class D, class T = hn::TFromD<D>>
HWY_INLINE void dot_group(D d, const T* const* p, std::size_t width, const T* HWY_RESTRICT c,
                          const T* HWY_RESTRICT a, const T* HWY_RESTRICT r, T* HWY_RESTRICT s,
                          T* HWY_RESTRICT t) {
  const std::size_t N = hn::Lanes(d);
  constexpr int kBlock = 16 / sizeof(T);
  hn::Vec<D> sum_a[G], sum_r[G];
  HWY_UNROLL(8)
  for (int g = 0; g < G; ++g) sum_a[g] = sum_r[g] = hn::Zero(d);
  HWY_UNROLL(8)
  for (int g = 0; g < G; ++g) {
    for (std::size_t j = 0; j < width; j += N) {
      const auto below = hn::Sub(hn::Load(d, c + j), hn::LoadU(d, p[g] + j));
      sum_a[g] = hn::NegMulAdd(below, hn::Load(d, a + j), sum_a[g]);
      if (kPair) sum_r[g] = hn::NegMulAdd(below, hn::Load(d, r + j), sum_r[g]);
    }
  }
  HWY_UNROLL(8)
  for (int g = 0; g < G; g += kBlock) {
    store_lane_sums(d, sum_a + g, s + g);
    if (kPair) store_lane_sums(d, sum_r + g, t + g);
  }
}

// The same for rows l < m of a tile; s and t are written up to m rounded up to G.
template <int G, bool kPair, class D, class T = hn::TFromD<D>>
HWY_INLINE void dots(D d, Tile<T> x, std::size_t m, std::size_t width, const T* c, const T* a,
                     const T* r, T* s, T* t, Ahead ahead) {
  const T* p[G];
  std::size_t l = 0;
  for (; l + G <= m; l += G) {
    ahead.fetch(l, G);
    const T* first = x.p + l * x.stride;
    HWY_UNROLL(8)
    for (int g = 0; g < G; ++g) p[g] = first + static_cast<std::size_t>(g) * x.stride;
    dot_group<G, kPair>(d, p, width, c, a, r, s + l, t + l);
  }
  if (l == m) return;
  for (int g = 0; g < G; ++g) {
    p[g] = x.p + HWY_MIN(l + static_cast<std::size_t>(g), m - 1) * x.stride;
  }
  dot_group<G, kPair>(d, p, width, c, a, r, s + l, t + l);
}

// Columns j .. j + C vectors of sum_l w_l (x_l - c) and, with kPair, sum_l k_l (x_l - c).
// It takes U tokens at a time, each with its own accumulators, so that short rows do not wait for
// the latency of FMA.
template <int C, int U, bool kPair, class D, class T = hn::TFromD<D>>
HWY_INLINE void sum_columns(D d, Tile<T> x, std::size_t m, std::size_t j, const T* c, const T* w,
                            const T* k, T* sum, T* product, Ahead ahead) {
  const std::size_t N = hn::Lanes(d);
  hn::Vec<D> sum_w[U][C], sum_k[U][C], shift[C];
  HWY_UNROLL(8)
  for (int i = 0; i < C; ++i) {
    shift[i] = hn::Load(d, c + j + static_cast<std::size_t>(i) * N);
    HWY_UNROLL(8)
    for (int u = 0; u < U; ++u) sum_w[u][i] = sum_k[u][i] = hn::Zero(d);
  }
  const auto add = [&](std::size_t l, int u) HWY_ATTR {
    const auto w_l = hn::Set(d, w[l]);
    const auto k_l = kPair ? hn::Set(d, k[l]) : w_l;
    const T* p = x.p + l * x.stride + j;
    HWY_UNROLL(8)
    for (int i = 0; i < C; ++i) {
      const auto below = hn::Sub(shift[i], hn::LoadU(d, p + static_cast<std::size_t>(i) * N));
      sum_w[u][i] = hn::NegMulAdd(below, w_l, sum_w[u][i]);
      if (kPair) sum_k[u][i] = hn::NegMulAdd(below, k_l, sum_k[u][i]);
    }
  };
  std::size_t l = 0;
  for (; l + U <= m; l += U) {
    ahead.fetch(l, U);
    HWY_UNROLL(8)
    for (int u = 0; u < U; ++u) add(l + static_cast<std::size_t>(u), u);
  }
  for (; l < m; ++l) add(l, 0);
  HWY_UNROLL(8)
  for (int i = 0; i < C; ++i) {
    HWY_UNROLL(8)
    for (int u = 1; u < U; ++u) {
      sum_w[0][i] = hn::Add(sum_w[0][i], sum_w[u][i]);
      sum_k[0][i] = hn::Add(sum_k[0][i], sum_k[u][i]);
    }
    hn::Store(sum_w[0][i], d, sum + j + static_cast<std::size_t>(i) * N);
    if (kPair) hn::Store(sum_k[0][i], d, product + j + static_cast<std::size_t>(i) * N);
  }
}

// sum = sum_l w_l (x_l - c) [width] and, with kPair, product = sum_l k_l (x_l - c) [width].
template <bool kPair, class D, class T = hn::TFromD<D>>
HWY_INLINE void sum_rows(D d, Tile<T> x, std::size_t m, std::size_t width, const T* c, const T* w,
                         const T* k, T* sum, T* product, Ahead ahead) {
  const std::size_t N = hn::Lanes(d);
  std::size_t j = 0;
  const Ahead none;
  const auto next = [&] { return j == 0 ? ahead : none; };
  if constexpr (!kPair) {
    for (; j + 8 * N <= width; j += 8 * N) {
      sum_columns<8, 1, kPair>(d, x, m, j, c, w, k, sum, product, next());
    }
  }
  for (; j + 4 * N <= width; j += 4 * N) {
    sum_columns<4, kPair ? 1 : 2, kPair>(d, x, m, j, c, w, k, sum, product, next());
  }
  for (; j + 2 * N <= width; j += 2 * N) {
    sum_columns<2, kPair ? 2 : 4, kPair>(d, x, m, j, c, w, k, sum, product, next());
  }
  if (j < width) sum_columns<1, 4, kPair>(d, x, m, j, c, w, k, sum, product, next());
}

// sum[i] += factor * part[i] in double for i < n. n is a multiple of the lanes of T, and both
// arrays are aligned.
template <class T>
HWY_INLINE void add_to(double* HWY_RESTRICT sum, const T* HWY_RESTRICT part, std::size_t n,
                       double factor = 1) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const auto f = hn::Set(d, factor);
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto x = hn::Load(narrow, part + i);
    if constexpr (sizeof(T) == 8) {
      hn::Store(hn::MulAdd(f, x, hn::Load(d, sum + i)), d, sum + i);
    } else {
      hn::Store(hn::MulAdd(f, hn::PromoteTo(d, x), hn::Load(d, sum + i)), d, sum + i);
    }
  }
}

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
