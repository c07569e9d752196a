// Quadrature over (w, x) of a regression task with Gaussian features, by scrambled Sobol points
// mapped to normals (random/sobol.h). Nodes come in pairs (w, x), (-w, x), so that the flow keeps
// readouts of block form, U = [[A,0],[0,0]], r = (0,b), as it does for the true average.
#pragma once

#include "esscher/random/stream.h"
#include "esscher/task/regression.h"

namespace esscher {

struct RegressionNodes {
  Matrix w;  // [n,d]
  Matrix x;  // [n,d]
  [[nodiscard]] Index count() const { return w.rows(); }
};

// n = 2^log2_count nodes, equal weights.
RegressionNodes regression_nodes(const LinearRegressionTask& task, int log2_count,
                                 const Stream& stream);

}  // namespace esscher
