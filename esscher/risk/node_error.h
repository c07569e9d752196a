// The squared error of one softmax head on a prompt of L centred Gaussian tokens, averaged over the
// prompt (docs/maths/icl.md#risk-of-softmax-at-finite-length). With a the tilt, tau^2 = a'Ga,
// g = r'Ga, q = r'Gr, target y and the universal functions H, m = M2c/tau^2 of (L, tau),
//
//   E (r'zbar - y)^2 = (g - y)^2 - 2 g (g - y) H + g^2 (m - H)/tau^2 + q H
#pragma once

#include <cstdint>
#include <memory>

#include "esscher/universal/universal_table.h"

namespace esscher {

// The error, in which the term (g - y)^2 of an infinite prompt is multiplied by `rest`, and its
// derivatives in g, tau^2 and q.
struct NodeError {
  double value, d_g, d_tau2, d_q;
};
NodeError node_error(const UniversalTable& table, double rest, double g, double tau2, double q,
                     double y);

// The tables of one prompt length. A table takes longer to make than a risk to evaluate, so each is
// made when it is first asked for and kept as long as its owner; copies share them. Ranges of tau
// are multiples of 8: the pieces of a table, hence the bits of a result, depend on the tau at hand
// only, never on what was asked before.
class NodeTables {
 public:
  explicit NodeTables(std::int64_t L);

  // A table that reaches tau; from any thread. Throws DomainError if tau exceeds kMaxTableTau.
  [[nodiscard]] const UniversalTable& up_to(double tau) const;
  [[nodiscard]] std::int64_t length() const;

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;
};

}  // namespace esscher
