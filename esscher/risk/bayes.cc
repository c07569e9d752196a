#include "esscher/risk/bayes.h"

#include <cmath>
#include <limits>
#include <vector>

#include "esscher/base/basis.h"
#include "esscher/base/cholesky.h"
#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/moments.h"
#include "esscher/random/wishart.h"
#include "esscher/task/features.h"

namespace esscher {
namespace {

constexpr Index kRowsAtOnce = 4096;  // bounds memory for long prompts of non-Gaussian features

// X'X of L rows in white coordinates, where X = xi Sigma^{1/2}.
Matrix white_gram(const LinearRegressionTask& task, std::int64_t L, const Stream& stream) {
  const Index d = task.dim;
  if (task.features == Features::gaussian) {
    return static_cast<double>(L) * wishart_mean(stream, Matrix::Identity(d, d), L);
  }
  Matrix xx = Matrix::Zero(d, d);
  for (std::int64_t first = 0; first < L; first += kRowsAtOnce) {
    const Index n = std::min<std::int64_t>(kRowsAtOnce, L - first);
    const Matrix xi = draw_features(task.features, d, stream, first, n);
    xx.noalias() += xi.transpose() * xi;
  }
  return xx;
}

// An orthonormal basis [d,rank] of the range of a PSD matrix. Eigenvalues that rounding alone can
// make are zero.
Matrix range_of(const Matrix& psd) {
  const Index d = psd.rows();
  const Eigensystem eigen = eigensystem(psd);
  const double floor = 4 * static_cast<double>(d) * std::numeric_limits<double>::epsilon() *
                       std::max(eigen.values(d - 1), 0.0);
  const Index rank = (eigen.values.array() > floor).count();
  return eigen.vectors.rightCols(rank);
}

// tr( Sq (I - P) ) s2/2 for the projection P on the range of a basis with independent columns.
double unseen_risk(const LinearRegressionTask& task, const Matrix& basis) {
  const Index d = task.dim, rank = basis.cols();
  double seen = 0;
  if (rank > 0) {
    const Matrix q = orthonormal_basis(basis, 0.0, rank);
    seen = (task.query_cov * q).cwiseProduct(q).sum();
  }
  return rank == d ? 0.0 : task.task_variance / 2 * std::max(0.0, task.query_cov.trace() - seen);
}

// tr( Sq Cov(w | X) ) / 2 for noisy labels.
double noisy_risk(const LinearRegressionTask& task, const Matrix& xx) {
  const double s2 = task.task_variance;
  const Matrix A = Matrix::Identity(task.dim, task.dim) + s2 / task.noise_variance * xx;
  // A is the identity plus a Gram matrix: positive definite.
  return s2 / 2 * solve_positive(A, task.query_cov).value().trace();
}

// What the prompt with this white Gram matrix leaves. How many directions it shows is read in white
// coordinates, where it does not depend on how small the variances in Sigma are. `shown` is the
// range of Sigma.
double posterior_risk(const RegressionSampler& sampler, const Matrix& shown, const Matrix& white) {
  const Matrix& F = sampler.F;
  if (sampler.task.noise_variance > 0) return noisy_risk(sampler.task, F * white * F);
  const Matrix seen = shown * range_of(shown.transpose() * white * shown);
  return unseen_risk(sampler.task, F * seen);
}

}  // namespace

Estimate bayes_risk(const LinearRegressionTask& task, Length length, std::int64_t replicates,
                    const Stream& stream) {
  task.check();
  const auto exact = [&](double posterior) {
    return Estimate{posterior + task.irreducible_risk(), 0, 0, Engine::exact};
  };
  // Infinitely many tokens, or noise-free Gaussian rows that span the range of Sigma, leave only
  // what Sigma never shows.
  const bool spans = task.features == Features::gaussian && task.noise_variance == 0 &&
                     !length.is_infinite() && length.count() >= task.dim;
  const Matrix shown = range_of(task.prompt_cov);
  if (length.is_infinite() || spans) return exact(unseen_risk(task, shown));
  if (length.count() == 0) {
    return exact(task.task_variance / 2 * task.query_cov.trace());
  }
  if (replicates < 2) {
    throw_argument("bayes_risk", "replicates", std::to_string(replicates), "an integer >= 2");
  }
  const RegressionSampler sampler(task);
  std::vector<double> values(static_cast<std::size_t>(replicates));
  parallel_for(replicates, [&](std::int64_t i) {
    values[i] = posterior_risk(sampler, shown, white_gram(task, length.count(), stream.split(i)));
  });
  const Engine engine = task.features == Features::gaussian ? Engine::sampled : Engine::direct;
  Estimate mean = moments_of(values).estimate(engine);
  mean.value += task.irreducible_risk();
  return mean;
}

}  // namespace esscher
