// In-context classification of two Gaussian classes:
//
//   label y = +1 or -1,   x | y ~ N(m_y, G),   token (x, y),   query (x, 0),   target y
//
// Tokens are a mixture of two Gaussians in R^{d+1} with the covariance blockdiag(G, 0). The best
// prediction of the label is the difference of its posterior probabilities,
//
//   E[y | x] = tanh( (log(pi_+/pi_-) + log N(x; m_+, G) - log N(x; m_-, G)) / 2 )
//
// and with the logistic loss it is the argument of tanh times two, the log odds. Risks are halves of
// squared errors of y, or means of log(1 + e^{-y out}); always guessing the more frequent label loses.
#pragma once

#include "esscher/task/context.h"
#include "esscher/task/means_law.h"

namespace esscher {

struct ClassificationTask {
  MixtureMeans means;  // two; the first is that of y = +1
  Vector weights;      // pi [2] > 0; empty: equal
  Matrix cov;          // G [d,d], positive definite
  TaskLoss loss = TaskLoss::squared;

  // Throws ArgumentError or DimensionError naming the field that is wrong.
  void check() const;
};

ContextTask classification_task(const ClassificationTask& task);

}  // namespace esscher
