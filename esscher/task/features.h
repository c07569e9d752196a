// Draws of the features, tasks and tokens of a regression task.
#pragma once

#include "esscher/random/stream.h"
#include "esscher/task/regression.h"

namespace esscher {

// n rows xi [n,d] with identity covariance. They are the rows first .. first + n - 1 of the stream,
// so a long prompt can be drawn in pieces.
Matrix draw_features(Features features, Index d, const Stream& stream, Index first, Index n);

// One draw of the task: w, the query x and the target y (noise included if query_noise).
struct RegressionDraw {
  Vector w;
  Vector x;
  double y = 0;
};
// prompt and query factors: F F' = prompt_cov, Fq Fq' = query_cov, so that x_l = F xi_l.
struct RegressionSampler {
  explicit RegressionSampler(const LinearRegressionTask& task);

  [[nodiscard]] RegressionDraw draw(const Stream& stream) const;
  // L tokens (x_l, y_l) [L,d+1] for this w.
  [[nodiscard]] Matrix prompt(const VectorView& w, Index L, const Stream& stream) const;

  LinearRegressionTask task;
  Matrix F, Fq;  // symmetric square roots [d,d]
};

}  // namespace esscher
