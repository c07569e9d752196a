// Tasks and readouts the tests share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "esscher/base/estimate.h"
#include "esscher/base/parallel.h"
#include "esscher/risk/readout.h"
#include "esscher/task/features.h"
#include "esscher/task/regression.h"
#include "tests/gradient_check.h"

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

// gradient_check for a function of (U, r): risk(at, gradient) -> value.
template <class Risk>
::testing::AssertionResult readout_gradient_check(const Risk& risk, const Readout& at,
                                                  const GradientTolerance& tolerance = {}) {
  const Index D = at.dim();
  const auto flat = [&](const Readout& x) {
    Vector out(D * D + D);
    out << Eigen::Map<const Vector>(x.U.data(), D * D), x.r;
    return out;
  };
  const std::function<double(const Vector&)> value = [&](const Vector& x) {
    return risk(Readout{Eigen::Map<const Matrix>(x.data(), D, D), x.tail(D)}, nullptr);
  };
  Readout gradient;
  risk(at, &gradient);
  return gradient_check(value, flat(at), flat(gradient), tolerance);
}

// The value and the gradient of a risk are the same bits for one thread and for three.
template <class Risk>
void expect_same_bits_for_any_threads(const Risk& risk, const Readout& at) {
  Readout one, many;
  set_thread_count(1);
  const double a = risk(at, &one);
  set_thread_count(3);
  const double b = risk(at, &many);
  set_thread_count(0);
  EXPECT_EQ(a, b);
  EXPECT_EQ(one.U, many.U);
  EXPECT_EQ(one.r, many.r);
}

}  // namespace esscher::testing
