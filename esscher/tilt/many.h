// Many queries over the same tokens, and many small prompts with one query each.
//
//   tilt_many   row i is mean_i = sum_l softmax_l(<a_i, k_l> + b_l) v_l
//   tilt_batch  row i is the mean of prompt i alone and, if r_i is given, the product C_hat_i r_i
//
// tilt_many reads the tokens once per 64 queries. Its scores and sums are matrix products of tiles
// that stay in cache, with accumulators in registers. Shifts, sums, trees and guarantees are those
// of tilt.h.
#pragma once

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
  Rows<T> keys, values;     // [n,dk], [n,dv], 1 <= n <= kTiltLeaf
  const T* bias = nullptr;  // [n] or null
};

// For each query the largest score, the normaliser and the weighted sum.
struct ManySums {
  Vector max, norm;  // [q]
  Matrix sum;        // [q,dv]
};

void run_many(const ManyTask<float>& task, ManySums& sums);
void run_many(const ManyTask<double>& task, ManySums& sums);

}  // namespace detail
}  // namespace esscher
