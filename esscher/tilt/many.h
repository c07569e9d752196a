// Many queries over the same tokens, and many small prompts with one query each.
//
//   tilt_many          row i is mean_i = sum_l softmax_l(<a_i, k_l> + b_l) v_l
//   tilt_causal        the same, where query i sees the first n - q + i + 1 tokens only
//   tilt_many_product  row i is zbar_i and C_hat_i r_i, over tokens that are keys and values
//   tilt_batch         row i is the mean of prompt i alone and, if r_i is given, C_hat_i r_i
//
// Scores and sums are matrix products of a block of queries and a tile of tokens, with sums in
// registers and a streaming softmax between them (panel-inl.h). Tokens that a causal mask hides from
// a whole panel of queries cost nothing. Shifts, sums, trees and guarantees are those of tilt.h: the
// bits of a row depend neither on the number of threads nor on the other queries.
#pragma once

#include <limits>
#include <span>

#include "esscher/tilt/tilt.h"

namespace esscher {

struct TiltRows {
  Matrix mean;         // [queries,dv]
  Matrix product;      // [queries,d] if asked for, else [0,0]
  Vector log_sum_exp;  // [queries]
};

// queries [q,dk], keys [n,dk], values [n,dv], log_weights [n] or empty; n >= 1 unmasked tokens.
template <class T>
TiltRows tilt_many(const Rows<T>& queries, const Rows<T>& keys, const Rows<T>& values,
                   std::span<const T> log_weights = {});

// queries [q,dk], keys [n,dk], values [n,dv], q <= n: the last query sees every token.
template <class T>
TiltRows tilt_causal(const Rows<T>& queries, const Rows<T>& keys, const Rows<T>& values);

// queries, r [q,d], tokens [n,d], log_weights [n] or empty: the forward pass and the VJP.
template <class T>
TiltRows tilt_many_product(const Rows<T>& queries, const Rows<T>& r, const Rows<T>& tokens,
                           std::span<const T> log_weights = {});

// queries [b,d]; tokens [b*length,d], where prompt i is the rows i*length .. (i+1)*length; r [b,d],
// or no rows if only means are wanted.
template <class T>
TiltRows tilt_batch(const Rows<T>& queries, const Rows<T>& r, const Rows<T>& tokens, Index length);

namespace detail {

// The number of queries in one block. Their packed copy and their sums stay in cache.
inline constexpr Index kQueryBlock = 64;

template <class T>
struct ManyTask {
  Rows<T> queries;          // [q,dk], q <= kQueryBlock
  Rows<T> r;                // [q,dv], or no rows: no product. With r, keys and values are the same.
  Rows<T> keys, values;     // [n,dk], [n,dv], 1 <= n <= kTiltLeaf
  const T* bias = nullptr;  // [n] or null
  // Query i sees the first visible + i tokens, which may be none or all.
  Index visible = std::numeric_limits<Index>::max() / 2;
};

// For each query the largest score, the normaliser, the weighted sum, and with r the weighted sums
// of t and of (t - f)(x - zbar), as in state.h.
struct ManySums {
  Vector max, norm, t_sum;  // [q]
  Matrix sum;               // [q,dv]
  Matrix product;           // [q,dv] or [0,0]
};

void run_many(const ManyTask<float>& task, ManySums& sums);
void run_many(const ManyTask<double>& task, ManySums& sums);

}  // namespace detail
}  // namespace esscher
