#include "esscher/risk/nodes.h"

#include <cmath>
#include <string>

#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"
#include "esscher/random/widened_normals.h"

namespace esscher {
namespace {

constexpr double kRounding = 1e-14;  // relative to U and r

void check(const LinearRegressionTask& task, int log2_count) {
  task.check();
  if (task.features != Features::gaussian) {
    throw CapabilityError("regression_nodes: features are " + std::string(name(task.features)) +
                          ", quadrature over (w, x) needs gaussian features; use simulated_risk");
  }
  if (log2_count < 1 || log2_count > 24) {
    throw_argument("regression_nodes", "log2_count", std::to_string(log2_count), "1 .. 24");
  }
}

// Coordinates of N(0, root root) in which `form` is diagonal, the sharpest first.
struct Coordinates {
  Coordinates(const Matrix& root, const Matrix& form) {
    const Eigensystem eigen = eigensystem(root * form * root);
    rates = eigen.values.reverse();
    map = root * eigen.vectors.rowwise().reverse();
  }
  Vector rates;  // [d]
  Matrix map;    // [d,d]: standard normals to points
};

RegressionNodes in_pairs(const Matrix& w, const Matrix& x, const Vector& weight) {
  const Index half = w.rows(), d = w.cols();
  RegressionNodes nodes{Matrix(2 * half, d), Matrix(2 * half, d), Vector(2 * half)};
  nodes.w << w, -w;
  nodes.x << x, x;
  nodes.weight << weight, weight;
  return nodes;
}

}  // namespace

ScoreForms score_forms(const LinearRegressionTask& task, const Readout& at) {
  const Index d = task.dim;
  const Matrix& S = task.prompt_cov;
  const Matrix alpha = at.U.topLeftCorner(d, d);
  const Vector beta = at.U.row(d).head(d);
  const double label = task.task_variance * S.trace() + task.noise_variance;
  return {alpha.transpose() * S * alpha + label * beta * beta.transpose(),
          beta.dot(task.query_cov * beta) * S};
}

bool is_blind_to_labels(const LinearRegressionTask& task, const Readout& at) {
  return at.U.row(task.dim).head(task.dim).norm() <= kRounding * at.U.norm();
}

bool is_block(const LinearRegressionTask& task, const Readout& at) {
  return is_blind_to_labels(task, at) && at.r.head(task.dim).norm() <= kRounding * at.r.norm();
}

Matrix pair_normals(const LinearRegressionTask& task, int log2_count, const Stream& stream,
                    Scrambling scrambling) {
  check(task, log2_count);
  return sobol_normals(2 * task.dim, log2_count - 1, stream, scrambling);
}

Matrix query_normals(const LinearRegressionTask& task, int log2_count, const Stream& stream,
                     Scrambling scrambling) {
  check(task, log2_count);
  return sobol_normals(task.dim, log2_count, stream, scrambling);
}

RegressionNodes regression_nodes(const LinearRegressionTask& task, int log2_count,
                                 const Stream& stream) {
  const Index d = task.dim;
  const Matrix normal = pair_normals(task, log2_count, stream);
  return in_pairs(std::sqrt(task.task_variance) * normal.leftCols(d),
                  normal.rightCols(d) * psd_sqrt("task", "query_cov", task.query_cov),
                  Vector::Ones(normal.rows()));
}

RegressionNodes regression_nodes(const LinearRegressionTask& task, const MatrixView& normals,
                                 const ScoreForms& forms) {
  const Index d = task.dim;
  const Coordinates x(psd_sqrt("task", "query_cov", task.query_cov), forms.query);
  const Coordinates w(std::sqrt(task.task_variance) * Matrix::Identity(d, d), forms.task);
  Vector rates(2 * d);
  rates << x.rates, w.rates;
  const WidenedNormals wide = widen(normals, widening(rates));
  return in_pairs(wide.points.rightCols(d) * w.map.transpose(),
                  wide.points.leftCols(d) * x.map.transpose(), wide.weights);
}

QueryNodes query_nodes(const LinearRegressionTask& task, const MatrixView& normals,
                       const ScoreForms& forms) {
  const Coordinates x(psd_sqrt("task", "query_cov", task.query_cov), forms.query);
  const WidenedNormals wide = widen(normals, widening(x.rates));
  return {wide.points * x.map.transpose(), wide.weights};
}

}  // namespace esscher
