// |grad R_L - grad R_inf| at one point, with its error.
//
// For softmax on linear regression with Gaussian features it is an average over nodes that are
// widened towards the sharp queries of the head at this point (risk/nodes.h), in independent
// scramblings. For other tasks it is an average over independent batches of draws. With the gaps
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

namespace esscher {

// The norm of a mean of vectors without the bias of its noise, as above. The engine is quadrature.
Estimate norm_of_mean(const CoMoments& vectors);

class GradientGap {
 public:
  GradientGap(const FlowSetup& setup, ModelKind kind, Length length);

  // At theta, in the coordinates of the setup. It is heavy if few nodes carry it.
  Estimate operator()(const VectorView& theta) const;

 private:
  // The gap in (U, r) of one repetition.
  using Repetition = std::function<Readout(const Readout& at)>;

  Parametrisation space_;
  std::vector<Repetition> repetitions_;
  std::function<bool(const Readout& at)> heavy_;
};

}  // namespace esscher
