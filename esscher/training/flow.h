// Gradient flow of any risk of coordinates theta, integrated by CVODE:
//
//   d theta/dt = -grad R(theta)
//
// Properties of an exact flow are monitored: conserved quantities, a risk that never rises, and the
// energy identity  R(theta(0)) - R(theta(t)) = int_0^t |grad R|^2.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/risk/risk.h"
#include "esscher/training/integrator.h"
#include "esscher/training/minimise.h"
#include "esscher/training/parametrisation.h"

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

constexpr auto enum_names(FlowStatus) {
  return EnumNames<FlowStatus, 4>{"status of a flow",
                                  {{{FlowStatus::stationary, "stationary"},
                                    {FlowStatus::t_end, "t_end"},
                                    {FlowStatus::max_steps, "max_steps"},
                                    {FlowStatus::failed, "failed"}}}};
}

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

// A risk of theta with its gradient, and what every exact flow of it keeps.
struct FlowField {
  SmoothFunction risk;
  std::function<Vector(const VectorView& theta)> conserved = {};      // absent: nothing
  std::function<double(const VectorView& theta)> scale_balance = {};  // absent: nothing
};

// Throws ArgumentError naming an option that makes no sense. A solver that gives up is a status.
FlowResult gradient_flow(const FlowField& field, const VectorView& theta0,
                         const FlowOptions& options);

// The risk of one head (U, r) in a parametrisation, and its flow.
FlowField flow_field(RiskFunction risk, const Parametrisation& space);
FlowResult gradient_flow(const RiskFunction& risk, const Parametrisation& space,
                         const VectorView& theta0, const FlowOptions& options);

// What a flow needs besides the kind of attention and the length of its prompts: twins share one.
struct FlowSetup {
  AnyTask task;
  Parametrisation space;
  Vector theta0;  // [space.size()]
  FlowOptions flow;
  RiskOptions risk;
};

// The flow of the risk of this model, recorded at flow.times. Quadrature nodes are chosen for the
// heads on the way of the infinite prompt from the same start (risk_function in risk.h).
FlowResult gradient_flow(const FlowSetup& setup, ModelKind kind, Length length);

// The heads of a path.
std::vector<Readout> readouts(const Parametrisation& space, const FlowResult& flow);

}  // namespace esscher
