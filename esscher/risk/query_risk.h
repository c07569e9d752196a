// Risk of softmax attention at finite prompt length for heads whose scores do not read labels,
// beta = 0, by nodes over queries alone. Given x, the error of quadrature.h is a polynomial in w,
// because tau^2 = x'alpha'S alpha x does not contain w. With
//
//   e = S alpha x,   c = v_x'e,   n = v_y e,   m = n - x,   Q = v_x'S v_x + v_y^2 (s2 tr S + sig2)
//
// its average over w ~ N(0, s2 I) is
//
//   E_w error = A0 + (Q - 2 A1) H + A2 k,   k = (M2c/tau^2 - H)/tau^2,
//   A0 = c^2 + s2 |m|^2,   A1 = c^2 + s2 n'm,   A2 = c^2 + s2 |n|^2
//
// The gradient is the exact gradient of the quadrature at beta = 0, the one in beta included.
#pragma once

#include <memory>
#include <optional>

#include "esscher/risk/node_error.h"
#include "esscher/risk/nodes.h"
#include "esscher/risk/quadrature.h"

namespace esscher {

class QueryRisk {
 public:
  // The control variate is that of SoftmaxRisk.
  QueryRisk(const LinearRegressionTask& task, NodeTables tables, QueryNodes nodes,
            std::optional<double> control = std::nullopt);

  // R_L at (U, r) with beta replaced by 0; same bits for any number of threads.
  double operator()(const Readout& at, Readout* gradient = nullptr) const;
  [[nodiscard]] NodeShares shares(const Readout& at) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace esscher
