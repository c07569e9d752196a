#include "esscher/task/pool.h"

#include <cmath>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/task/regression.h"
#include "esscher/task/weights.h"

namespace esscher {
namespace {

// Residuals below this share of the largest label count as none where there is no noise.
constexpr double kExactFit = 1e-9;

Vector posterior(const PoolTask& task, const Matrix& prompt) {
  const Index d = task.cov.rows();
  Vector out(task.pool.rows());
  const double scale = prompt.col(d).squaredNorm() * kExactFit * kExactFit;
  const double variance = task.noise_variance > 0 ? task.noise_variance : std::max(scale, 1e-300);
  for (Index i = 0; i < out.size(); ++i) {
    const Vector rest = prompt.col(d) - prompt.leftCols(d) * task.pool.row(i).transpose();
    out[i] = std::log(task.weights[i]) - rest.squaredNorm() / (2 * variance);
  }
  out = (out.array() - out.maxCoeff()).exp();
  return out / out.sum();
}

QueryMoments moments_of(const PoolTask& task) {
  const Index d = task.cov.rows();
  const Vector mean = task.pool.transpose() * task.weights;
  QueryMoments out{Vector::Zero(d + 1), Matrix::Zero(d + 1, d + 1), Vector::Zero(1),
                   Matrix::Zero(1, d + 1), 0};
  out.zz.topLeftCorner(d, d) = task.cov;
  out.tz.leftCols(d) = (task.cov * mean).transpose();
  for (Index i = 0; i < task.pool.rows(); ++i) {
    out.tt += task.weights[i] * task.pool.row(i).dot(task.cov * task.pool.row(i).transpose());
  }
  if (task.query_noise) out.tt += task.noise_variance;
  return out;
}

}  // namespace

void PoolTask::check() const {
  if (pool.size() == 0) throw_argument("task", "pool", "empty", "at least one w");
  check_finite("task", "pool", pool);
  check_weights("task", weights, pool.rows());
  check_dimension("task", "cov", cov.rows(), pool.cols());
  (void)psd_factor("task", "cov", cov);
  if (!(noise_variance >= 0)) {
    throw_argument("task", "noise_variance", to_text(noise_variance), "a number >= 0");
  }
}

ContextTask pool_task(const PoolTask& given) {
  PoolTask task = given;
  task.weights = equal_unless_given(given.weights, given.pool.rows());
  task.check();
  const Index d = task.cov.rows();
  LinearRegressionTask regression = LinearRegressionTask::with_covariance(task.cov);
  regression.noise_variance = task.noise_variance;
  std::vector<std::shared_ptr<const TokenLaw>> laws;
  for (Index i = 0; i < task.pool.rows(); ++i) {
    laws.push_back(std::make_shared<const TokenLaw>(
        SharedMixture{Vector::Ones(1), Matrix::Zero(1, d + 1),
                      token_covariance(regression, task.pool.row(i).transpose())}));
  }
  const Matrix root = psd_sqrt("task", "cov", task.cov);
  ContextTask out;
  out.type = TaskType::pool;
  out.token_dim = d + 1;
  out.out_dim = 1;
  out.query_normals = d;
  out.strata = task.weights;
  out.fixed_law = task.pool.rows() == 1;
  out.node = [=](const VectorView& normals, Index i) {
    const Vector x = root * normals;
    ContextNode node{laws[static_cast<std::size_t>(i)], Vector::Zero(d + 1),
                     Vector::Constant(1, task.pool.row(i).dot(x)),
                     task.query_noise ? task.noise_variance : 0};
    node.query.head(d) = x;
    return node;
  };
  out.target = [](const ContextNode& node, const Stream& stream) {
    return Vector::Constant(1, node.target[0] + std::sqrt(node.variance) * stream.normal(0)).eval();
  };
  out.moments = [moments = moments_of(task)](const Stream&) { return moments; };
  out.posterior_mean = [task, d](const Matrix& prompt, const Vector& query) {
    return Vector::Constant(1, posterior(task, prompt).dot(task.pool * query.head(d))).eval();
  };
  return out;
}

}  // namespace esscher
