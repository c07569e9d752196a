// A head of a real model: the queries, keys and values that entered its softmax. Query i attends to
// the keys l < prompt_end(i): all n of them, or the first i + 1 if the head is causal.
//
//   T(q) = sum_l omega_l v_l,   omega = softmax(s),   s_l = scale <q, k_l>
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/heads/rotary.h"

namespace esscher {

// Rows [first, first + count) of a tensor, as doubles, so that a head may be larger than memory. It
// is called with ranges inside the tensor only, possibly from several threads.
using RowSource = std::function<Matrix(Index first, Index count)>;

struct Head {
  std::string name;
  Index n = 0;          // keys
  Index n_queries = 0;  // queries
  Index dk = 0;
  Index dv = 0;
  double scale = 1;
  bool causal = false;
  std::optional<Rotary> rotary = {};  // how keys were turned by their positions, if known
  RowSource Q;                        // [n_queries, dk]
  RowSource K;                        // [n, dk]
  RowSource V;                        // [n, dv]

  [[nodiscard]] Index prompt_end(Index query) const { return causal ? query + 1 : n; }
};

// Q [n_queries,dk], K [n,dk], V [n,dv]. Throws DimensionError or ArgumentError naming the head.
Head make_head(std::string name, Matrix Q, Matrix K, Matrix V, double scale, bool causal);

// Throws unless shapes agree, n > 0, the scale is finite, and a causal head has one query per key.
void check_head(const Head& head);

// The queries to look at: the second half for causal heads, evenly spaced ones otherwise, at most
// `most` of them.
std::vector<Index> default_queries(const Head& head, Index most = 128);

}  // namespace esscher
