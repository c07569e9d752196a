// Asymptotic constants of one query, any measure with Lambda(2a) finite (delta method):
//
//   L E|T_hat - T|^2 -> e^{Lambda(2a) - 2 Lambda(a)} [ tr V C_2a V' + |V(m_2a - m_a)|^2 ]
//   grad_v: d_v times this with V = I
//   grad_u: |z|^2 e^{..} E_2a |V((x - m_a)(x - m_a)' - C_a)|_F^2,   x ~ the measure tilted by 2a
//   grad_k, grad_q: with scale^2 |Qz|^2, and with K' on the right, as in prompt/exact_gaussian.h
//
// The gradient in U needs third and fourth cumulants of the tilted measure; they are derivatives of
// C_a and are taken by central differences of the closed form (relative accuracy about 1e-7).
#pragma once

#include "esscher/attention/attention.h"
#include "esscher/attention/metric.h"
#include "esscher/measure/any_measure.h"

namespace esscher {

// Infinity where Lambda(2a) is: the mean-square error then falls slower than 1/L.
double asymptotic_constant(Metric metric, const AnyMeasure& mu, const Attention& attention,
                           const VectorView& z);

// Exponent of the slow regime, a prediction and not a theorem (one-big-jump heuristic):
//   gamma = min(1, (sqrt(1 + 4/lambda) - 1)/2),  D(L) ~ L^-gamma up to powers of log L
double predicted_exponent(double lambda);

}  // namespace esscher
