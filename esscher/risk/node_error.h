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

// What the error needs of the universal functions, k = (m - H)/tau^2, and derivatives in tau^2.
struct NodeFunctions {
  double H, k, dH, dk;
};

// They are read from a table up to tau = 600. Beyond it softmax is frozen on the token of the
// largest score, up to O(1/tau^2): E S and E S^2 are those at 600 scaled by tau and tau^2.
class NodeFunctionTable {
 public:
  explicit NodeFunctionTable(std::shared_ptr<const UniversalTable> table);
  [[nodiscard]] NodeFunctions at_tau2(double tau2) const;

 private:
  [[nodiscard]] NodeFunctions frozen(double tau2) const;

  std::shared_ptr<const UniversalTable> table_;
  double tau2_limit_;
};

// The error, in which the term (g - y)^2 of an infinite prompt is multiplied by `rest`, and its
// derivatives in g, tau^2 and q.
struct NodeError {
  double value, d_g, d_tau2, d_q;
};
NodeError node_error(const NodeFunctions& u, double rest, double g, double q, double y);

// The tables of one prompt length. A table takes longer to make than a risk to evaluate, so each is
// made when it is first asked for and kept as long as its owner; copies share them, and so do the
// owners of the last few lengths. Ranges of tau
// are fixed: the pieces of a table, hence the bits of a result, depend on the tau at hand only,
// never on what was asked before.
class NodeTables {
 public:
  explicit NodeTables(std::int64_t L);

  // A table for all tau up to this one, which is finite; from any thread.
  [[nodiscard]] NodeFunctionTable up_to(double tau) const;
  [[nodiscard]] std::int64_t length() const;

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;
};

}  // namespace esscher
