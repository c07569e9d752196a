// Tasks beyond regression on the line, and layers for them, that tests of several folders share.
#pragma once

#include <vector>

#include "esscher/risk/layer.h"
#include "esscher/task/classification.h"
#include "esscher/task/denoising.h"
#include "esscher/task/single_index_task.h"

namespace esscher::testing {

// Clean points around 1.5 and -1.5.
inline DenoisingTask two_points(double gamma, double xi) {
  DenoisingTask task;
  task.means.fixed = Matrix{{1.5}, {-1.5}};
  task.gamma = gamma;
  task.xi = xi;
  return task;
}

// Two classes whose means are not opposite.
inline ContextTask two_classes(double variance = 1) {
  ClassificationTask task;
  task.means.fixed = Matrix{{1.0}, {-0.6}};
  task.cov = Matrix{{variance}};
  return classification_task(task);
}

inline ContextTask index_on_the_line() {
  SingleIndexTask task;
  task.cov = Matrix::Identity(1, 1);
  return single_index_task(task);
}

// W = 0.1 I, and head h with U = (1 + h step) u I and V = v I, as far as they act.
inline Layer small_layer(const ContextTask& task, const std::vector<ModelKind>& kinds, double u,
                         double v, double step) {
  const Index D = task.token_dim, m = task.out_dim;
  Layer out{0.1 * Matrix::Identity(D, D).bottomRows(m), {}};
  for (const ModelKind kind : kinds) {
    const double scale = 1 + step * static_cast<double>(out.heads.size());
    out.heads.push_back(
        {kind, u * scale * Matrix::Identity(D, D), v * Matrix::Identity(D, D).bottomRows(m)});
  }
  return out;
}

}  // namespace esscher::testing
