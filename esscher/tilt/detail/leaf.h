// One leaf of the merge tree: the moments of at most kTiltLeaf tokens, by SIMD. This is a private
// header.
#pragma once

#include "esscher/tilt/tilt.h"

namespace esscher::detail {

// Scores s_l = <a, keys_l> + bias_l and, if r is given, scalars t_l = <r, values_l>. The moments
// are those of x = keys or x = values.
template <class T>
struct LeafTask {
  const T* a = nullptr;     // [dk]
  const T* r = nullptr;     // [dv] or null: no product
  Rows<T> keys;             // [n,dk]
  Rows<T> values;           // [n,dv]
  const T* bias = nullptr;  // [n] or null
  bool of_keys = false;     // x = keys, else values
  bool second = false;
};

// The state of the leaf. Arrays are written, not added to.
struct LeafSums {
  double max, norm, t_sum;
  double* sum;      // [d]
  double* product;  // [d] or null
  double* second;   // [d,d] or null
};

void run_leaf(const LeafTask<float>& task, LeafSums& sums);
void run_leaf(const LeafTask<double>& task, LeafSums& sums);

// The same as a TiltState.
template <class T>
TiltState leaf_state(const LeafTask<T>& task);

}  // namespace esscher::detail
