// Where training and flows start: theta of each head, in any parametrisation. The words are the
// same in C++, in TOML (model.init.kind) and in Python (init=).
//
//   torch     every entry of every matrix is uniform on [-c, c], c = 1/sqrt(fan_in),
//             as torch.nn.Linear(bias=False) draws it
//   balanced  U = alpha [[S, 0], [0, 0]],  r = (0, alpha),  |S|_F = 1    ([BB26], eq. 9)
//             one head:       S is the given shape, scaled, or I/sqrt(d)
//             several heads:  S = W W' / |W W'|_F, W [d,d] of standard normals, one per head,
//                             because heads that start equal stay equal
//   identity  U = alpha [[I, 0], [0, 0]],  r = (0, alpha)
//   normal    every entry of every matrix is N(0, alpha^2)
//   dense     (U, r) is given for each head
//
// A start given as (U, r) becomes K, Q (and V, O) by a balanced factorisation (parametrisation.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/random/stream.h"
#include "esscher/task/regression.h"
#include "esscher/training/parametrisation.h"

namespace esscher {

inline constexpr Index kMaxHeads = 8;  // of a trained model

enum class StartKind { torch, balanced, identity, normal, dense };

constexpr auto enum_names(StartKind) {
  return EnumNames<StartKind, 5>{"init",
                                 {{{StartKind::torch, "torch"},
                                   {StartKind::balanced, "balanced"},
                                   {StartKind::identity, "identity"},
                                   {StartKind::normal, "normal"},
                                   {StartKind::dense, "dense"}}}};
}

struct StartOptions {
  StartKind kind = StartKind::torch;
  double alpha = 0.1;               // balanced, identity, normal
  Matrix shape = {};                // balanced, one head: S up to scale, PSD [d,d]; empty: identity
  std::vector<Readout> dense = {};  // [H], for dense
  std::optional<std::uint64_t> seed = {};  // of what is random; the seed of the run if absent
};

// theta of all heads one after another [H * space.size()].
Vector start_parameters(const Parametrisation& space, Index heads, const StartOptions& options,
                        std::uint64_t run_seed);

// The balanced start of one head ([BB26] eq. 9 of docs/references.md):
//   U = alpha0 [[S, 0], [0, 0]],   r = (0, alpha0),   S = shape/|shape|_F
// `shape` is PSD [d,d], the identity if empty.
Readout balanced_start(Index d, double alpha0, const MatrixView& shape = Matrix());

// One of several balanced heads, whose S is drawn.
Readout random_balanced(Index d, double alpha0, const Stream& stream);

// sqrt 2 / (d^{1/4} |Sigma|_op): the paper's theorem starts with 0 < alpha0 < this.
double balanced_start_bound(const LinearRegressionTask& task);

}  // namespace esscher
