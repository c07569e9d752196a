#include "esscher/risk/nodes.h"

#include <cmath>
#include <string>

#include "esscher/base/error.h"
#include "esscher/random/sobol.h"

namespace esscher {

RegressionNodes regression_nodes(const LinearRegressionTask& task, int log2_count,
                                 const Stream& stream) {
  task.check();
  if (task.features != Features::gaussian) {
    throw CapabilityError("regression_nodes: features are " + std::string(name(task.features)) +
                          ", quadrature over (w, x) needs gaussian features; use simulated_risk");
  }
  if (log2_count < 1 || log2_count > 24) {
    throw_argument("regression_nodes", "log2_count", std::to_string(log2_count), "1 .. 24");
  }
  const Index d = task.dim, half = Index(1) << (log2_count - 1);
  const Matrix normal = sobol_normals(2 * d, log2_count - 1, stream);
  const Matrix Fq = psd_sqrt("task", "query_cov", task.query_cov);
  RegressionNodes nodes{Matrix(2 * half, d), Matrix(2 * half, d)};
  nodes.w.topRows(half) = std::sqrt(task.task_variance) * normal.leftCols(d);
  nodes.w.bottomRows(half) = -nodes.w.topRows(half);
  nodes.x.topRows(half) = normal.rightCols(d) * Fq;
  nodes.x.bottomRows(half) = nodes.x.topRows(half);
  return nodes;
}

}  // namespace esscher
