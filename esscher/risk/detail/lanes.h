// Prompts side by side in lanes, for the sampled gradient of one head. This is what the training
// loop spends its time on. Internal to risk/batch.cc.
//
// White coordinates (risk/batch.cc): given w~ the tokens are (xi, w~'xi + sig eps), so
//   a~ = (U_x n + w~ (u_y.n), sig u_y.n),   r~ = (r_x + w~ r_y, sig r_y),
//   e1 = a~/|a~|,  e2 = r~ off e1, normalised (0 where nothing is left: no division by zero),
//   tau = |a~|,  r~ = c1 e1 + c2 e2,
// and the sums of prompt/sampled_sums.h give the mean and the covariance of (g_1, g_2) under
// softmax and the noise off span(e1, e2). Linear attention needs the second moment instead: a 2 x 2
// Wishart matrix per prompt, whatever L. At L = inf both are linear with the identity: mean a~,
// product r~.
#pragma once

#include "esscher/base/length.h"
#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"
#include "esscher/risk/model_kind.h"
#include "esscher/task/features.h"
#include "esscher/task/regression.h"

namespace esscher {

inline constexpr Index kTrainLanes = 16;

// What is drawn for the tasks of prompts first .. first + count - 1, out [2 d + 1, count]: w, then the
// white query n_x with the law of the features (the query is Fq n_x), then the label noise of the
// query, so that the target is y = w'Fq n_x + noise.
void draw_tasks(const LinearRegressionTask& task, const Stream& stream, Index first, Index count,
                double* out);

// The draw of one prompt.
RegressionDraw draw_task(const RegressionSampler& sampler, const Stream& stream, Index prompt);

struct LaneBatch {
  const LinearRegressionTask* task;
  const Matrix* F;   // [d,d]
  const Matrix* Fq;  // [d,d]
  const Matrix* U;   // white [D,d], of several heads one below the other
  const Vector* r;   // white [D]
  ModelKind kind;
  Length L;
  bool draws_tokens;       // also where a matrix per prompt would do
  double loss_factor;      // loss = loss_factor (prediction - y)^2, summed over prompts
  double residual_factor;  // d loss / d prediction = residual_factor (prediction - y)
};

// Prompts first .. first + count - 1 of the batch (count <= kTrainLanes): adds the gradient in
// white (U [D,d], r [D]) and returns the sum of losses. The task and query of a prompt are
// draw_tasks'.
double sampled_lanes(const LaneBatch& batch, const Stream& stream, Index first, Index count,
                     Matrix& grad_U, Vector& grad_r);

}  // namespace esscher
