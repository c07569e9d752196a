// Half the squared error of a head (U, r) on one draw of a task, and its gradient in (U, r).
#pragma once

#include "esscher/measure/any_measure.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/risk/model_kind.h"
#include "esscher/risk/readout.h"

namespace esscher {

struct ContextDraw {
  AnyMeasure tokens;
  Vector query;  // [D]
  double target = 0;
};

// What a head with tilt a reads of its tokens, the prediction being r'mean: m_a and C_a r
// (softmax), S a and S r with S = E zz' (linear). The product only if asked for.
struct HeadMoments {
  Vector mean, product;  // [D]
};
HeadMoments head_moments(const AnyMeasure& tokens, const VectorView& a, const VectorView& r,
                         ModelKind kind, bool product);

// Attention on the tokens as they are: a prompt, or a law with its own tilted moments. The gradient
// of the half squared error is added to *gradient.
double draw_error(const ContextDraw& draw, const Readout& at, ModelKind kind, Readout* gradient);

// Averaged over prompts of L tokens of the law N(m, G), without drawing them. Softmax weights do
// not see m, so with y' = y - r'm this is node_error.h; for linear attention, with a the tilt,
//
//   E (r'Sa - y)^2 = (mu - y)^2 + Var/L,   mu = r'Ga + (r'm)(a'm),
//   Var = (r'Gr)(a'Ga) + (r'Ga)^2 + (a'm)^2 r'Gr + (r'm)^2 a'Ga + 2 (a'm)(r'm) r'Ga
double draw_error(const GaussianLaw& law, std::int64_t L, const VectorView& query, double target,
                  const Readout& at, ModelKind kind, Readout* gradient);

}  // namespace esscher
