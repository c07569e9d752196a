#include "esscher/risk/bayes.h"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <cmath>
#include <vector>

#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/moments.h"
#include "esscher/random/wishart.h"
#include "esscher/task/features.h"

namespace esscher {
namespace {

constexpr Index kRowsAtOnce = 4096;  // bounds memory for long prompts of non-Gaussian features

// X'X of L rows.
Matrix gram(const RegressionSampler& sampler, std::int64_t L, const Stream& stream) {
  const Index d = sampler.task.dim;
  if (sampler.task.features == Features::gaussian) {
    return static_cast<double>(L) * wishart_mean(stream, sampler.F, L);
  }
  Matrix xx = Matrix::Zero(d, d);
  for (std::int64_t first = 0; first < L; first += kRowsAtOnce) {
    const Index n = std::min<std::int64_t>(kRowsAtOnce, L - first);
    const Matrix xi = draw_features(sampler.task.features, d, stream, first, n);
    xx.noalias() += xi.transpose() * xi;
  }
  return sampler.F * xx * sampler.F;
}

// tr( Sq Cov(w | X) ) / 2
double posterior_risk(const LinearRegressionTask& task, const Matrix& xx) {
  const double s2 = task.task_variance, sig2 = task.noise_variance;
  const Index d = task.dim;
  if (sig2 > 0) {
    const Matrix A = Matrix::Identity(d, d) + s2 / sig2 * xx;
    return s2 / 2 * Eigen::LLT<Eigen::MatrixXd>(A).solve(Eigen::MatrixXd(task.query_cov)).trace();
  }
  const Eigensystem eigen = eigensystem(xx);
  const double floor = 1e-10 * std::max(eigen.values(d - 1), 0.0);
  double sum = 0;
  for (Index i = 0; i < d; ++i) {
    if (eigen.values(i) > floor) continue;
    const Vector u = eigen.vectors.col(i);
    sum += u.dot(task.query_cov * u);
  }
  return s2 / 2 * sum;
}

}  // namespace

Estimate bayes_risk(const LinearRegressionTask& task, Length length, std::int64_t replicates,
                    const Stream& stream) {
  task.check();
  const Index d = task.dim;
  const auto exact = [&](const Matrix& xx) {
    return Estimate{posterior_risk(task, xx) + task.irreducible_risk(), 0, 0, Engine::exact};
  };
  const Matrix& S = task.prompt_cov;
  // Infinitely many tokens, or noise-free Gaussian rows that span the range of Sigma, leave only
  // what Sigma never shows.
  const bool spans = task.features == Features::gaussian && task.noise_variance == 0 &&
                     !length.is_infinite() && length.count() >= d;
  if (length.is_infinite() || spans) {
    LinearRegressionTask noise_free = task;
    noise_free.noise_variance = 0;
    return {posterior_risk(noise_free, S) + task.irreducible_risk(), 0, 0, Engine::exact};
  }
  if (length.count() == 0) return exact(Matrix::Zero(d, d));
  if (replicates < 2) {
    throw_argument("bayes_risk", "replicates", std::to_string(replicates), "an integer >= 2");
  }
  const RegressionSampler sampler(task);
  std::vector<double> values(static_cast<std::size_t>(replicates));
  parallel_for(replicates, [&](std::int64_t i) {
    values[i] = posterior_risk(task, gram(sampler, length.count(), stream.split(i)));
  });
  const Engine engine = task.features == Features::gaussian ? Engine::sampled : Engine::direct;
  Estimate mean = moments_of(values).estimate(engine);
  mean.value += task.irreducible_risk();
  return mean;
}

}  // namespace esscher
