// What models do to scores before the softmax, and which keys a query sees. For query i at position
// p (heads/head.h) and key l,
//
//   s_l = softcap tanh(scale <q,k_l> / softcap) + bias_il,   seen: p - window < l <= p, bias_il > -inf
//   T   = sum_l e^{s_l} v_l / (e^sink + sum_l e^{s_l})
//
// A sink logit is a key of a given score and of value 0. Positions that are added to scores with a
// slope (ALiBi, Press et al. 2022) are no rule: slope * l is one more coordinate of the keys, exactly,
// because softmax does not see what all scores share (with_alibi below).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "esscher/base/linalg.h"

namespace esscher {

struct HeadRules {
  Index window = 0;                 // keys that a causal query sees, its own the last; 0: all
  double softcap = 0;               // 0: none
  std::optional<double> sink = {};  // score of a key of value 0
  // What is added to the scores of one query, [n]; -inf hides a key. It may be called from several
  // threads. Empty: nothing is added.
  std::function<Vector(Index query)> bias = {};

  [[nodiscard]] bool none() const { return window == 0 && softcap == 0 && !sink && !bias; }
};

struct Head;

// The keys that a query sees, in order, and their scores as they enter the softmax.
struct SeenKeys {
  std::vector<Index> keys;
  Vector scores;
};

// K [n,dk] are all keys of the head.
SeenKeys seen_keys(const Head& head, const MatrixView& K, Index query);

// True if the query sees a key.
bool sees_keys(const Head& head, Index query);

// The same head with one more coordinate: score l gains slope * l. Throws ArgumentError if the head
// has a softcap or a sink logit, which would see what all scores share, or scale 0.
Head with_alibi(Head head, double slope);

}  // namespace esscher
