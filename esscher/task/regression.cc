#include "esscher/task/regression.h"

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/task/power_matrix.h"

namespace esscher {

LinearRegressionTask LinearRegressionTask::isotropic(Index dim) {
  if (dim < 1) throw_argument("task", "dim", std::to_string(dim), "an integer >= 1");
  return with_covariance(Matrix::Identity(dim, dim));
}

LinearRegressionTask LinearRegressionTask::with_covariance(const MatrixView& covariance) {
  LinearRegressionTask task;
  task.dim = covariance.rows();
  task.prompt_cov = covariance;
  task.query_cov = covariance;
  task.check();
  return task;
}

void LinearRegressionTask::check() const {
  const auto not_negative = [](double x) { return std::isfinite(x) && x >= 0; };
  if (dim < 1) throw_argument("task", "dim", std::to_string(dim), "an integer >= 1");
  if (!not_negative(task_variance)) {
    throw_argument("task", "task_variance", to_text(task_variance), "a finite number >= 0");
  }
  if (!not_negative(noise_variance)) {
    throw_argument("task", "noise_variance", to_text(noise_variance), "a finite number >= 0");
  }
  check_dimension("task", "prompt_cov", prompt_cov.rows(), dim);
  check_dimension("task", "query_cov", query_cov.rows(), dim);
  psd_factor("task", "prompt_cov", prompt_cov);
  psd_factor("task", "query_cov", query_cov);
}

double LinearRegressionTask::irreducible_risk() const {
  return query_noise ? noise_variance / 2 : 0.0;
}

Matrix token_covariance(const LinearRegressionTask& task, const VectorView& w) {
  const Index d = task.dim;
  check_dimension("token_covariance", "w", w.size(), d);
  const Vector Sw = task.prompt_cov * w;
  Matrix G(d + 1, d + 1);
  G.topLeftCorner(d, d) = task.prompt_cov;
  G.topRightCorner(d, 1) = Sw;
  G.bottomLeftCorner(1, d) = Sw.transpose();
  G(d, d) = w.dot(Sw) + task.noise_variance;
  return G;
}

Matrix power_covariance(Index dim, double rho) { return power_matrix(dim, dim, rho); }

}  // namespace esscher
