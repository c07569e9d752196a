// Where training starts: theta of each head, in any parametrisation.
//
//   torch           every matrix as torch.nn.Linear(bias=False) makes it: uniform on
//   +-1/sqrt(fan_in) balanced        BB eq. 9: U = alpha [[S, 0], [0, 0]], r = (0, alpha), |S|_F =
//   1; S = I/sqrt(d) for
//                   one head, a random PSD matrix per head for several (equal heads stay equal)
//   small_identity  U = alpha [[I, 0], [0, 0]], r = (0, alpha)
//   dense           given (U, r) per head
// Starts given as (U, r) become K, Q (, V, O) by a balanced factorisation (readout.h).
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
