// Twin trajectories: gradient flows from one start, at L = infinity (the reference) and at finite
// L with softmax or linear attention, compared in time. The paper claims along training:
//
//   parameters   |theta_L(t) - theta_inf(t)|              stay close up to a horizon
//   gradients    sup_t |grad R_L - grad R_inf|            along the reference path -> 0 with L
//   limits       lim_t R_L(theta_L(t)) <= lim_t R_inf(theta_inf(t)) + eps for L >= L(eps)
//                (Theorem 4.3; for linear regression the right side is the Bayes risk: Theorem 5.1)
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "esscher/training/gradient_gap.h"

namespace esscher {

// flow.times is set by reference_flow.
struct TwinSetup : FlowSetup {
  double horizon_distance = 0.1;  // relative to |theta_inf(t)|
  int points = 100;               // recorded times, geometric from 1e-3 to 1 times the end
};

// The flow at L = infinity, recorded at `points` times up to its end.
FlowResult reference_flow(const TwinSetup& setup);
FlowResult reference_flow(const FlowField& limit, const VectorView& theta0, FlowOptions options,
                          int points);

struct TwinPoint {
  double t = 0;
  double risk = 0;            // R_L(theta_L(t))
  double reference_risk = 0;  // R_inf(theta_inf(t))
  double distance = 0;        // |theta_L(t) - theta_inf(t)|
  Estimate gradient_gap;      // |grad R_L - grad R_inf| at theta_inf(t) (gradient_gap.h)
};

// A flow beside the reference.
struct TwinTrack {
  Length length = 1;
  FlowStatus status = FlowStatus::failed;
  double t_end = 0;
  Vector theta;            // where the flow stopped
  Estimate limiting_risk;  // R_L there, on nodes other than those of the flow
  // Points at the times of the reference. Suprema are over these times only, because softmax on
  // long prompts goes on slowly along the valley where R_inf is flat (U smaller, r larger).
  std::vector<TwinPoint> path;
  double sup_distance = 0;
  Estimate sup_gradient_gap;  // along the reference path; the error is that of the largest one
  double sup_risk_gap = 0;
  double horizon = 0;  // last recorded time before the distance first exceeds
                       // horizon_distance * |theta_inf(t)|; t of the last point if it never does
};

// The flow of the field from the start of the reference, at its times. `gap` is the gap of gradients
// at theta. Length and limiting risk are left to the caller.
TwinTrack twin_track(const FlowField& field, FlowOptions options, const FlowResult& reference,
                     const std::function<Estimate(const VectorView& theta)>& gap,
                     double horizon_distance);

struct Twin : TwinTrack {
  ModelKind kind = ModelKind::softmax;
  Readout end;  // theta as a head
};

// The flow at this length and model, seen beside the reference.
Twin twin_flow(const TwinSetup& setup, const FlowResult& reference, ModelKind kind, Length length);

struct LengthForRisk {
  double eps = 0;
  std::int64_t length = 0;  // 0 if none was found up to max_length
  // A 95 % interval of the length, from independent sets of nodes; both are `length` where the risk
  // has a closed form. Absent for tasks whose risk is a mean over draws, and if none was found.
  std::optional<std::int64_t> low = {}, high = {};
  double risk = 0;         // limiting risk at length
  double risk_before = 0;  // limiting risk at length - 1
};

// L(eps): the smallest L with lim_t R_L <= target + eps, by whole flows. It assumes that the
// limiting risk falls with L, as it does for nested prompts of a trained model.
//
// Linear attention and tasks by draws: doubling from 64 and bisection, all on the same draws.
// Softmax by nodes: a flow fits its nodes, so each end point is judged on fresh ones. A search on
// one set of nodes comes within 5 % of the answer. There flows on `scramblings` independent sets
// are run at two lengths, between which risks are linear in log L: each set has its own length, and
// the spread of their logarithms gives the interval (Student's t).
LengthForRisk length_for_risk(const TwinSetup& setup, ModelKind kind, double target, double eps,
                              std::int64_t max_length = 1000000000);

// The same by doubling and bisection for any flow, which starts and stops alike at every length.
LengthForRisk length_for_risk(const std::function<FlowResult(std::int64_t L)>& flow, double target,
                              double eps, std::int64_t max_length = 1000000000);

}  // namespace esscher
