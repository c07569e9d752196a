// Risk of softmax attention at finite prompt length, exact over the tokens
// (docs/maths/icl.md#risk-of-softmax-at-finite-length).
// Given (w, x), with a = U(x,0), G = G_w, tau^2 = a'Ga, g = r'Ga, q = r'Gr, y = w'x and the
// universal functions H, m = M2c/tau^2 of (L, tau) (universal/universal.h; M1 = tau^2 (1 - H)):
//
//   E[(prediction - y)^2 | w, x] = (g - y)^2 - 2 g (g - y) H + g^2 (m - H)/tau^2 + q H
//
// R_L is half of its average over (w, x), by quadrature nodes with weights. R_inf, half of the
// average of the first term, is known in closed form and serves as control variate:
//
//   R_L = c R_inf + average of (error - c (g - y)^2)/2,   c = max(0, 1 - 50/L) unless given
//
// For short prompts the risk hardly constrains U. The quadrature error of the control variate grows
// like |U|^4 and would dominate, so c = 0 there. The cost does not depend on L. The gradient is the
// exact gradient of the quadrature, so a flow along it lowers the quadrature itself. One head,
// Gaussian features; other cases: CapabilityError, use simulated_risk (sample_risk.h).
#pragma once

#include <memory>
#include <optional>

#include "esscher/base/estimate.h"
#include "esscher/base/length.h"
#include "esscher/risk/node_error.h"
#include "esscher/risk/nodes.h"
#include "esscher/risk/readout.h"

namespace esscher {

// What the nodes contribute to R_L [n], halves and weights included: the error of an infinite
// prompt, and what a finite one adds to it.
struct NodeShares {
  Vector limit, excess;
};

// c above.
double default_control(std::int64_t L);

// Throws DimensionError if the readout does not fit the task.
void check_readout(const LinearRegressionTask& task, const Readout& at);

class SoftmaxRisk {
 public:
  // L >= 1 and finite (for infinity the closed form is limit_risk).
  SoftmaxRisk(const LinearRegressionTask& task, std::int64_t L, RegressionNodes nodes,
              std::optional<double> control = std::nullopt);
  // The same at the length of the tables, which several risks may share.
  SoftmaxRisk(const LinearRegressionTask& task, NodeTables tables, RegressionNodes nodes,
              std::optional<double> control = std::nullopt);
  ~SoftmaxRisk();
  SoftmaxRisk(SoftmaxRisk&&) noexcept;
  SoftmaxRisk& operator=(SoftmaxRisk&&) noexcept;

  // R_L at (U, r), irreducible risk included; same bits for any number of threads. Throws
  // DomainError if tau^2 overflows.
  double operator()(const Readout& at, Readout* gradient = nullptr) const;
  [[nodiscard]] NodeShares shares(const Readout& at) const;

  [[nodiscard]] std::int64_t length() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct QuadratureOptions {
  int log2_nodes = 12;  // per scrambling
  int scramblings = 8;  // independent; the spread of their means is the standard error
};

// R_L with its standard error over independent scramblings; infinity gives limit_risk. Nodes are
// widened towards the sharp queries of this head, and tasks are averaged over by hand where its
// scores do not read labels (nodes.h, query_risk.h). The engine is quadrature. The answer is heavy
// if few nodes of a scrambling carry what is not known in closed form (carriers.h).
Estimate softmax_risk(const LinearRegressionTask& task, const Readout& at, Length length,
                      const QuadratureOptions& options, const Stream& stream);

}  // namespace esscher
