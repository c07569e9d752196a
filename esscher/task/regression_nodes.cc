#include "esscher/task/regression_nodes.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"

namespace esscher {
namespace {

// The posterior mean of w: (X'X + lambda I)^+ X'y, lambda = sig2/s2.
Vector ridge(const LinearRegressionTask& task, const Matrix& prompt) {
  const Index d = task.dim;
  const auto X = prompt.leftCols(d);
  const Eigensystem system = eigensystem(X.transpose() * X);
  const double lambda = task.noise_variance / task.task_variance;
  const double floor = 1e-12 * std::max(system.values.maxCoeff(), 0.0);
  Vector inverse(d);
  for (Index j = 0; j < d; ++j) {
    const double value = system.values[j] + lambda;
    inverse[j] = value > floor ? 1 / value : 0;
  }
  const Vector Xy = X.transpose() * prompt.col(d);
  return system.vectors * (inverse.asDiagonal() * (system.vectors.transpose() * Xy));
}

}  // namespace

ContextTask regression_task_nodes(const LinearRegressionTask& task) {
  task.check();
  if (task.features != Features::gaussian) {
    throw CapabilityError(
        "task: layers learn regression with Gaussian features here; features are " +
        std::string(name(task.features)));
  }
  if (!(task.task_variance > 0)) {
    throw_argument("task", "task_variance", to_text(task.task_variance), "a number > 0");
  }
  const Index d = task.dim;
  const Matrix root = psd_sqrt("task", "query_cov", task.query_cov);
  ContextTask out;
  out.type = TaskType::regression;
  out.token_dim = d + 1;
  out.out_dim = 1;
  out.law_normals = out.query_normals = d;
  out.strata = Vector::Ones(1);
  out.node = [task, root, d](const VectorView& normals, Index) {
    const Vector w = std::sqrt(task.task_variance) * normals.head(d), x = root * normals.tail(d);
    ContextNode node{std::make_shared<const TokenLaw>(SharedMixture{
                         Vector::Ones(1), Matrix::Zero(1, d + 1), token_covariance(task, w)}),
                     Vector::Zero(d + 1), Vector::Constant(1, w.dot(x)),
                     task.query_noise ? task.noise_variance : 0};
    node.query.head(d) = x;
    return node;
  };
  out.target = [](const ContextNode& node, const Stream& stream) {
    return Vector::Constant(1, node.target[0] + std::sqrt(node.variance) * stream.normal(0)).eval();
  };
  QueryMoments moments{
      Vector::Zero(d + 1), Matrix::Zero(d + 1, d + 1), Vector::Zero(1), Matrix::Zero(1, d + 1),
      task.task_variance * task.query_cov.trace() + (task.query_noise ? task.noise_variance : 0)};
  moments.zz.topLeftCorner(d, d) = task.query_cov;
  out.moments = [moments](const Stream&) { return moments; };
  out.posterior_mean = [task, d](const Matrix& prompt, const Vector& query) {
    return Vector::Constant(1, ridge(task, prompt).dot(query.head(d))).eval();
  };
  return out;
}

}  // namespace esscher
