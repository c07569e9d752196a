// |grad R_L - grad R_inf| at one point, with its error.
//
// For softmax on linear regression with Gaussian features it is an average over nodes that are
// widened towards the sharp queries of the head at this point (risk/nodes.h), in independent
// scramblings. For other tasks it is an average over independent batches of draws, and for layers
// over independent nets of nodes or batches of prompts. With the gaps
// g_k of the repetitions, their mean g and the covariance C of g,
//
//   gap^2 = max(0, |g|^2 - tr C),   standard error = (g'C g)^{1/2} / |g|
//
// because noise adds tr C to |g|^2. Linear attention and the infinite prompt have formulas.
#pragma once

#include <functional>
#include <vector>

#include "esscher/estimate/moments.h"
#include "esscher/training/flow.h"
#include "esscher/training/layer_model.h"

namespace esscher {

// The norm of a mean of vectors without the bias of its noise, as above. The engine is quadrature.
Estimate norm_of_mean(const CoMoments& vectors);

class GradientGap {
 public:
  GradientGap(const FlowSetup& setup, ModelKind kind, Length length);
  // Of a layer, in the coordinates of its family: on the same nodes or draws at L and at infinity,
  // others in each repetition. A lattice of nodes needs one repetition and has no error.
  GradientGap(const LayerModel& model, Length length, const RiskOptions& options);

  // At theta, in the coordinates of the setup. It is heavy if few nodes carry it.
  Estimate operator()(const VectorView& theta) const;

 private:
  // The gap of one repetition.
  using Repetition = std::function<Vector(const VectorView& theta)>;

  std::vector<Repetition> repetitions_;
  std::function<bool(const VectorView& theta)> heavy_;
  Engine engine_ = Engine::quadrature;
};

}  // namespace esscher
