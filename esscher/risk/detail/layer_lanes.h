// Prompts side by side in lanes, for the gradient of a layer on tokens of a mixture of one
// covariance. Internal to risk/layer_batch.cc.
//
// A token of sum_k p_k N(m_k, FF') is a linear image of a white one (task/token_lanes.h),
//
//   z' = G u,   u = (xi, e_k),   G = (F, m_1, .., m_K),
//
// so the sums of several heads over white tokens (head_lanes.h) serve a layer with a~_h = G'U_h z
// and r~_h = G'V_h'(out - t):
//
//   T_h = G mean_h,   dV_h = (out - t) T_h',   dU_h = G product_h z'.
//
// (out - t is the derivative of half the squared error; task/loss.h has that of other losses.)
// With one output the miss out - t is a factor that is put in afterwards. With several it has to be
// known first: short prompts are kept and visited twice (head_visits.h), long ones are drawn twice.
#pragma once

#include <cstdint>

#include "esscher/random/stream.h"
#include "esscher/risk/detail/lane_laws.h"
#include "esscher/risk/layer.h"
#include "esscher/task/loss.h"

namespace esscher {

// Up to kTrainLanes prompts.
struct LanePrompts {
  LaneLaws laws;
  Matrix queries;  // [D,n]
  Matrix targets;  // [m,n]
};

// The losses of these prompts of L tokens, summed, whose tokens are those of first, first + 1, ..
// of the stream. The gradient is added.
double add_mixture_lanes(const Layer& layer, const LanePrompts& prompts, std::int64_t L,
                         const Stream& tokens, Index first, TaskLoss loss, Layer& gradient);

}  // namespace esscher
