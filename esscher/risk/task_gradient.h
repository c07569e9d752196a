// Derivatives of a risk in what the task is made of, at a fixed head (U, r): the noise sig2, the
// variance s2 of the task, and the covariances S of the prompt and Sq of the query
// (docs/maths/icl.md#derivatives-in-the-task).
//
// Closed forms (closed_form.h) are polynomials in these. For softmax at finite length, given (w,x),
// the error of node_error.h depends on S and sig2 through G_w = J S J' + sig2 e e', J = [I; w']:
//
//   dR/dS    = E [ t_ a_w a_w' + g_ sym(r_w a_w') + q_ r_w r_w' ]/2,   a_w = J'a,  r_w = J'r
//   dR/dsig2 = E [ t_ (beta'x)^2 + g_ v_y beta'x + q_ v_y^2 ]/2   (+ 1/2 if the target is noisy)
//
// with t_, g_, q_ the derivatives of the error in tau^2, g and q. A change of a covariance moves
// the points of a Gaussian average by half of it, in relative terms:
//
//   dR/dSq = E sym( err_x (Sq^-1 x)' )/4,   dR/ds2 = E <err_w, w>/(4 s2)
#pragma once

#include <optional>

#include "esscher/risk/nodes.h"
#include "esscher/risk/quadrature.h"
#include "esscher/risk/risk.h"

namespace esscher {

// Matrices are symmetric: dR = <prompt_cov, dS> for a symmetric change dS.
struct TaskGradient {
  double noise_variance = 0;
  double task_variance = 0;  // NaN at finite length if s2 = 0
  Matrix prompt_cov;         // [d,d]
  Matrix query_cov;          // [d,d]; NaN at finite length if Sq is singular
};

// Of linear_risk, that is of limit_risk at infinity.
TaskGradient linear_task_gradient(const LinearRegressionTask& task, const Readout& at,
                                  Length length);

// Of the risk of softmax on these nodes; the control variate is that of SoftmaxRisk.
TaskGradient softmax_task_gradient(const LinearRegressionTask& task, const Readout& at,
                                   const NodeTables& tables, const RegressionNodes& nodes,
                                   std::optional<double> control = std::nullopt);

// By the method of choose_risk. Nodes are widened for this head and come from the stream of the
// options: the spread over streams is the error. Throws CapabilityError where there is no formula.
TaskGradient task_gradient(const AnyTask& task, const Readout& at, ModelKind kind, Length length,
                           const RiskOptions& options);

}  // namespace esscher
