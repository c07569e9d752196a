// Gradient flow  d theta/dt = -grad R(theta)  of any risk of (U, r) in any parametrisation, by
// CVODE. What an exact flow keeps is monitored: conserved quantities, decreasing risk, and the
// energy identity  R(theta(0)) - R(theta(t)) = int_0^t |grad R|^2.
#pragma once

#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "esscher/risk/readout.h"
#include "esscher/task/regression.h"
#include "esscher/training/integrator.h"

namespace esscher {

struct FlowOptions {
  double rtol = 1e-8;
  double atol = 1e-10;
  double t_end = std::numeric_limits<double>::infinity();
  double stationary = 1e-9;  // stop when |grad R| <= this
  std::int64_t max_steps = 100000;
  Stepping stepping = Stepping::bdf;
  std::vector<double> times;  // where the path is recorded; empty: after every internal step
};

enum class FlowStatus { stationary, t_end, max_steps, failed };
std::string_view name(FlowStatus status);

struct FlowPoint {
  double t = 0;
  Vector theta;
  double risk = 0;
  double gradient_norm = 0;
};

struct FlowResult {
  FlowStatus status = FlowStatus::failed;
  std::string message;          // of the solver, when it failed
  std::vector<FlowPoint> path;  // starts at t = 0; the end point is always in it
  double conserved_drift = 0;   // max over steps of |c(theta(t)) - c(theta(0))|, largest entry
  double scale_drift = 0;       // the same for Parametrisation::scale_balance
  double energy_defect = 0;     // |R(0) - R(end) - int |grad R|^2|
  double largest_increase = 0;  // largest rise of the risk over one step
  std::int64_t steps = 0;
  std::int64_t evaluations = 0;  // of the gradient

  [[nodiscard]] const FlowPoint& end() const { return path.back(); }
};

FlowResult gradient_flow(const RiskFunction& risk, const Parametrisation& space,
                         const VectorView& theta0, const FlowOptions& options);

// The balanced start ([BB26] eq. 9 of docs/references.md):
//   U = alpha0 [[Theta Theta', 0], [0, 0]],   r = (0, alpha0),   |Theta Theta'|_F = 1
// `shape` is Theta Theta' up to scale (PSD [d,d], identity if empty).
Readout balanced_start(Index d, double alpha0, const MatrixView& shape = Matrix());

// sqrt 2 / (d^{1/4} |Sigma|_op): the paper's theorem starts with 0 < alpha0 < this.
double balanced_start_bound(const LinearRegressionTask& task);

}  // namespace esscher
