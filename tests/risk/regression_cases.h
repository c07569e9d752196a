// Tasks and readouts the tests share.
#pragma once

#include <algorithm>
#include <cmath>

#include "esscher/base/estimate.h"
#include "esscher/risk/readout.h"
#include "esscher/task/features.h"
#include "esscher/task/regression.h"

namespace esscher::testing {

inline Matrix random_matrix(Index rows, Index cols, const Stream& stream) {
  Matrix m(rows, cols);
  stream.fill_normal(0, {m.data(), static_cast<std::size_t>(m.size())});
  return m;
}

// A general readout of size `scale`: every entry differs from zero.
inline Readout random_readout(Index D, double scale, const Stream& stream) {
  return {scale * random_matrix(D, D, stream.split(0)),
          scale * random_matrix(1, D, stream.split(1)).row(0).transpose()};
}

// Different prompt and query covariances, noise, s2 != 1.
inline LinearRegressionTask general_task(Index d, const Stream& stream) {
  const Matrix B = random_matrix(d, d, stream.split(2)) / std::sqrt(double(d));
  LinearRegressionTask task = LinearRegressionTask::with_covariance(power_covariance(d, 0.5));
  task.query_cov = B * B.transpose() + 0.3 * Matrix::Identity(d, d);
  task.task_variance = 0.7;
  task.noise_variance = 0.3;
  return task;
}

inline Estimate mean_of(const Vector& values, Engine engine = Engine::direct) {
  const double n = static_cast<double>(values.size()), mean = values.mean();
  const double variance = (values.array() - mean).square().sum() / (n - 1);
  return {mean, std::sqrt(variance / n), values.size(), engine};
}

// max over entries of |gradient - central difference|, relative to the largest entry.
template <class Risk>
double gradient_defect(const Risk& risk, const Readout& at, double h = 1e-5) {
  Readout gradient;
  risk(at, &gradient);
  double worst = 0, scale = gradient.norm();
  const auto probe = [&](double& entry, double got, const Readout& moved) {
    const double keep = entry;
    entry = keep + h;
    const double up = risk(moved, nullptr);
    entry = keep - h;
    const double down = risk(moved, nullptr);
    entry = keep;
    worst = std::max(worst, std::abs((up - down) / (2 * h) - got));
  };
  Readout moved = at;
  for (Index i = 0; i < at.U.size(); ++i) probe(moved.U.data()[i], gradient.U.data()[i], moved);
  for (Index i = 0; i < at.r.size(); ++i) probe(moved.r(i), gradient.r(i), moved);
  return worst / scale;
}

}  // namespace esscher::testing
