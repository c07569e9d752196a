// (U, r) and the task in the letters of closed_form.h.
#pragma once

#include "esscher/risk/readout.h"
#include "esscher/task/regression.h"

namespace esscher::detail {

struct Letters {
  Letters(const LinearRegressionTask& task, const Readout& at)
      : S(task.prompt_cov),
        Sq(task.query_cov),
        s2(task.task_variance),
        sig2(task.noise_variance),
        trace(S.trace()),
        fourth(trace * trace + 2 * S.squaredNorm()),
        kappa(s2 * s2 * fourth),
        alpha(at.U.topLeftCorner(task.dim, task.dim)),
        beta(at.U.row(task.dim).head(task.dim)),
        v_x(at.r.head(task.dim)),
        v_y(at.r(task.dim)) {}

  const Matrix& S;
  const Matrix& Sq;
  double s2, sig2, trace;
  double fourth;  // tr(S)^2 + 2 tr S^2
  double kappa;   // s2^2 times that: E (w'S w)^2
  Matrix alpha;
  Vector beta, v_x;
  double v_y;
};

}  // namespace esscher::detail
