// The squared error of one softmax head on a prompt of L centred Gaussian tokens, averaged over the
// prompt (docs/maths/icl.md#risk-of-softmax-at-finite-length). With a the tilt, tau^2 = a'Ga,
// g = r'Ga, q = r'Gr, target y and the universal functions H, m = M2c/tau^2 of (L, tau),
//
//   E (r'zbar - y)^2 = (g - y)^2 - 2 g (g - y) H + g^2 (m - H)/tau^2 + q H
#pragma once

#include <memory>

#include "esscher/universal/universal_table.h"

namespace esscher {

// The error, with `rest` times the (g - y)^2 of an infinite prompt in it, and its derivatives in g,
// tau^2 and q.
struct NodeError {
  double value, d_g, d_tau2, d_q;
};
NodeError node_error(const UniversalTable& table, double rest, double g, double tau2, double q,
                     double y);

// The table of length L up to tau, kept by the process. Throws DomainError if tau exceeds
// kMaxTableTau.
std::shared_ptr<const UniversalTable> table_for(std::int64_t L, double tau);

}  // namespace esscher
