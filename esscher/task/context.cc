#include "esscher/task/context.h"

#include <algorithm>

#include "esscher/base/eigensystem.h"
#include "esscher/random/draws.h"

namespace esscher {
namespace {

// tr B A^+ B' for a positive semidefinite A: what is explained of the target.
double explained(const Matrix& A, const Matrix& B) {
  const Eigensystem system = eigensystem(A);
  const double floor = 1e-12 * std::max(system.values.maxCoeff(), 0.0);
  const Matrix rotated = B * system.vectors;
  double out = 0;
  for (Index j = 0; j < system.values.size(); ++j) {
    if (system.values[j] > floor) out += rotated.col(j).squaredNorm() / system.values[j];
  }
  return out;
}

}  // namespace

NodeDraw draw_normals(const ContextTask& task, const Stream& stream) {
  NodeDraw out{Vector(task.law_normals + task.query_normals),
               CategoricalDraw(task.strata)(stream.split(1).uniform(0))};
  stream.split(0).fill_normal(0,
                              {out.normals.data(), static_cast<std::size_t>(out.normals.size())});
  return out;
}

ContextNode draw_node(const ContextTask& task, const Stream& stream) {
  const NodeDraw draw = draw_normals(task, stream);
  return task.node(draw.normals, draw.stratum);
}

double best_affine_risk(const QueryMoments& m) {
  const Matrix cov = m.zz - m.z * m.z.transpose(), cross = m.tz - m.t * m.z.transpose();
  return 0.5 * std::max(0.0, m.tt - m.t.squaredNorm() - explained(cov, cross));
}

double best_linear_risk(const QueryMoments& m) {
  return 0.5 * std::max(0.0, m.tt - explained(m.zz, m.tz));
}

}  // namespace esscher
