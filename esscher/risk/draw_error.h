// Half the squared error of a head (U, r) on one draw of a task, and its gradient in (U, r).
#pragma once

#include "esscher/measure/gaussian_view.h"
#include "esscher/risk/model_kind.h"
#include "esscher/risk/node_error.h"
#include "esscher/risk/readout.h"
#include "esscher/task/task.h"

namespace esscher {

// What a head with tilt a reads of its tokens. The prediction is r'mean. For softmax attention mean
// and product are m_a and C_a r, for linear attention S a and S r with S = E zz'. The product is
// computed only if it is asked for.
struct HeadMoments {
  Vector mean, product;  // [D]
};
HeadMoments head_moments(const AnyMeasure& tokens, const VectorView& a, const VectorView& r,
                         ModelKind kind, bool product);

// Attention on the tokens as they are, a prompt or a law with its own tilted moments. The gradient
// of half the squared error is added to *gradient.
double draw_error(const ContextDraw& draw, const Readout& at, ModelKind kind, Readout* gradient);

// Averaged over prompts of tables.length() tokens of the law N(m, G), without drawing them. Softmax
// weights do not see m, so with y' = y - r'm this is node_error.h; for linear attention, with a the
// tilt,
//
//   E (r'Sa - y)^2 = (mu - y)^2 + Var/L,   mu = r'Ga + (r'm)(a'm),
//   Var = (r'Gr)(a'Ga) + (r'Ga)^2 + (a'm)^2 r'Gr + (r'm)^2 a'Ga + 2 (a'm)(r'm) r'Ga
double draw_error(const GaussianLaw& law, const NodeTables& tables, const VectorView& query,
                  double target, const Readout& at, ModelKind kind, Readout* gradient);

}  // namespace esscher
