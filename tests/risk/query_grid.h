// A trapezoidal rule over the query in a box of +- `reach` standard deviations, `points` per axis,
// as nodes with weights. It knows nothing of Sobol points or widening.
#pragma once

#include <cmath>
#include <numbers>

#include "esscher/risk/nodes.h"

namespace esscher::testing {

inline QueryNodes query_grid(const LinearRegressionTask& task, Index points, double reach) {
  const Index d = task.dim;
  Index n = 1;
  for (Index j = 0; j < d; ++j) n *= points;
  const double h = 2 * reach / static_cast<double>(points - 1);
  Matrix xi(n, d);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0, rest = i; j < d; ++j, rest /= points) {
      xi(i, j) = -reach + h * static_cast<double>(rest % points);
    }
  }
  const double cell = std::pow(h / std::sqrt(2 * std::numbers::pi), static_cast<double>(d));
  const Vector density = (-0.5 * xi.rowwise().squaredNorm().array()).exp();
  return {xi * psd_sqrt("grid", "query_cov", task.query_cov),
          static_cast<double>(n) * cell * density};
}

}  // namespace esscher::testing
