// A head of a real model: the queries, keys and values that entered its softmax. Query i attends to
// the keys l < prompt_end(i): all n of them, or, if the head is causal, those up to its own. The m
// queries of a causal head belong to the last m keys, so that query i has position p = n - m + i:
// m = n for a whole text, m < n for queries that were decoded after a long prompt.
//
//   T(q) = sum_l omega_l v_l,   omega = softmax(s),   s_l = scale <q, k_l>
//
// Rules (heads/rules.h) change scores or hide keys.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/heads/rotary.h"
#include "esscher/heads/rules.h"

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
  HeadRules rules = {};
  RowSource Q;  // [n_queries, dk]
  RowSource K;  // [n, dk]
  RowSource V;  // [n, dv]

  [[nodiscard]] Index prompt_end(Index query) const {
    return causal ? n - n_queries + query + 1 : n;
  }
  [[nodiscard]] Index prompt_begin(Index query) const {
    return rules.window > 0 ? std::max<Index>(0, prompt_end(query) - rules.window) : 0;
  }
  // Every query is at the end of its own keys, from the first key on.
  [[nodiscard]] bool has_whole_text() const { return causal && n_queries == n; }
};

// Q [n_queries,dk], K [n,dk], V [n,dv]. Throws DimensionError or ArgumentError naming the head.
Head make_head(std::string name, Matrix Q, Matrix K, Matrix V, double scale, bool causal);

// Throws unless shapes agree, n > 0, the scale is finite, a causal head has at most one query per key,
// and the rules mean something: a window needs a causal head, a softcap is not negative.
void check_head(const Head& head);

// The queries to look at: the second half of a whole causal text, evenly spaced ones otherwise, at
// most `most` of them, without those that see no key.
std::vector<Index> default_queries(const Head& head, Index most = 128);

}  // namespace esscher
