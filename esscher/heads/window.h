// A head with an exact window and a tail: the first keys (sinks), the last keys and the heaviest of
// the others are kept, and the moments of the rest stand for the rest (heads/tail.h), all under one
// normaliser. With E the exact keys and a = scale * q,
//
//   T(a) = (sum_E e^{s_i} v_i + e^A T_tail) / (sum_E e^{s_i} + e^A),   s_i = <a, k_i>
//
// A key that leaves the window is added to the moments in O(d^2), and memory does not grow with the
// prompt. Keys may come one by one or many at a time: the bits are the same, except for a mixture.
//
//   WindowedHead head(dk, dv, {.window = 16});
//   for (each token) { head.push(k, v); out = head(scale * q); }
#pragma once

#include <optional>
#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/heads/mixture_fit.h"
#include "esscher/heads/rotary.h"
#include "esscher/heads/surrogate.h"
#include "esscher/heads/tail.h"

namespace esscher {

struct WindowOptions {
  Index window = 16;  // exact keys without the heavy ones: the sinks and the last window - sinks
  Index sinks = 1;    // at most `window`
  // A key that leaves the window is kept instead of the lightest heavy key if it is heavier. The
  // weight of a key is its mean softmax weight over the queries of attend() since it came.
  Index heavy = 0;
  Tail tail = Tail::finite;
  std::optional<MixtureFit> mixture = {};  // of keys, for Tail::mixture
  std::optional<Rotary> rotary = {};       // for Tail::rotary; key 0 is the first one pushed
};

// The two sides of a window as one query sees them. Scores are relative to an origin of the keys,
// which all of them share, so that large means cost no digits.
struct WindowParts {
  TailValue exact;      // log-mass and mean value of the exact keys
  ScoreMixture scores;  // of the tail; values are absolute
  double count = 0;     // keys in the tail
};

// The softmax over both sides.
Vector combine(Tail tail, const WindowParts& parts);

class WindowedHead {
 public:
  // Throws ArgumentError if the widths or options mean nothing.
  WindowedHead(Index dk, Index dv, WindowOptions options);

  // keys [n,dk], values [n,dv], in the order of the prompt.
  void push(const MatrixView& keys, const MatrixView& values);

  // T(a) for a [dk]. Throws CapabilityError before the first key.
  [[nodiscard]] Vector operator()(const VectorView& a) const;
  // The same with another tail, which must need no moments that this one does not keep.
  [[nodiscard]] Vector operator()(const VectorView& a, Tail tail) const;
  // The same, and notes which exact keys the query weighs.
  Vector attend(const VectorView& a);

  [[nodiscard]] WindowParts parts(const VectorView& a) const;

  [[nodiscard]] const WindowOptions& options() const { return options_; }
  [[nodiscard]] Index count() const { return count_; }  // keys so far
  [[nodiscard]] Index exact_keys() const { return used_; }
  // Numbers to keep now: pairs in the window, and the moments once a key has left it.
  [[nodiscard]] Index state() const;
  // Bytes that this object holds for them, in double precision.
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Slot {
    Index key = 0;      // number of the key in the prompt
    double weight = 0;  // sum of its weights
    double queries = 0;
  };

  void push_piece(const MatrixView& keys, const MatrixView& values);
  void push_one(const VectorView& key, const VectorView& value);
  void leave(Index slot);
  void add_to_tail(const MatrixView& keys, const MatrixView& values, Index first_key);
  void add_moments(const MatrixView& keys, const MatrixView& values, Index first_key);
  [[nodiscard]] Vector exact_scores(const VectorView& a) const;
  [[nodiscard]] Index recent() const { return options_.window - options_.sinks; }

  Index dk_, dv_;
  WindowOptions options_;
  Index count_ = 0;
  Index used_ = 0;         // rows of keys_ in use: sinks, the ring of last keys, heavy keys
  Index tail_begin_ = -1;  // the first key in the tail
  Matrix keys_, values_;   // [window + heavy, d]
  std::vector<Slot> slots_;
  std::optional<PromptMoments> tail_;  // made when the first key leaves, which is its origin
};

}  // namespace esscher
