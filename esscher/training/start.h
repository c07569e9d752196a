// Where training starts: theta of each head, in any parametrisation.
//
//   torch           every entry of every matrix is uniform on [-c, c], c = 1/sqrt(fan_in),
//                   as torch.nn.Linear(bias=False) draws it
//   balanced        U = alpha [[S, 0], [0, 0]],  r = (0, alpha),  |S|_F = 1    ([BB26], eq. 9)
//                   one head:       S = I/sqrt(d)
//                   several heads:  S = W W' / |W W'|_F, W [d,d] of standard normals, one per head,
//                                   because heads that start equal stay equal
//   small_identity  U = alpha [[I, 0], [0, 0]],  r = (0, alpha)
//   dense           (U, r) is given for each head
//
// A start given as (U, r) becomes K, Q (and V, O) by a balanced factorisation (risk/readout.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "esscher/random/stream.h"
#include "esscher/risk/readout.h"

namespace esscher {

enum class InitKind { torch, balanced, small_identity, dense };

std::string_view name(InitKind kind);
InitKind parse_init_kind(const std::string& text);

struct InitOptions {
  InitKind kind = InitKind::torch;
  double alpha = 0.1;          // balanced, small_identity
  std::vector<Readout> dense;  // [H], for dense
};

// theta of all heads one after another [H * space.size()].
Vector initial_parameters(const Parametrisation& space, Index heads, const InitOptions& options,
                          const Stream& stream);

}  // namespace esscher
