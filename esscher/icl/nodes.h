// Quadrature over (w, x) of a regression task with Gaussian features: Sobol points with a random
// linear matrix scramble and digital shift (unbiased, and as accurate as Owen's scrambling), taken
// through the inverse normal. Nodes come in pairs (w, x), (-w, x), so that the block readouts
// U = [[A,0],[0,0]], r = (0,b) stay an invariant set of the flow, as they are for the true average.
#pragma once

#include "esscher/icl/task.h"
#include "esscher/random/stream.h"

namespace esscher {

// 2^m scrambled Sobol points in (0,1)^dims  [2^m, dims]; every coordinate has exactly one point in
// each of the 2^m intervals of width 2^-m. dims <= 1000, m <= 30.
Matrix scrambled_sobol(Index dims, int m, const Stream& stream);

struct RegressionNodes {
  Matrix w;  // [n,d]
  Matrix x;  // [n,d]
  [[nodiscard]] Index count() const { return w.rows(); }
};

// n = 2^log2_count nodes, equal weights.
RegressionNodes regression_nodes(const LinearRegressionTask& task, int log2_count,
                                 const Stream& stream);

}  // namespace esscher
