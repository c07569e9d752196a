// Asymptotic constants lim L E|X_hat - X|^2 of one query, by the delta method, for any measure with
// Lambda(2a) finite. With e = e^{Lambda(2a) - 2 Lambda(a)}, x drawn from the measure tilted by 2a
// and D = (x - m_a)(x - m_a)' - C_a,
//
//   output  e [ tr V C_2a V' + |V(m_2a - m_a)|^2 ]
//   grad_v  d_v times this with V = I
//   grad_u  |z|^2 e E_2a |V D|_F^2
//   grad_k  scale^2 |Qz|^2 e E_2a |V D|_F^2
//   grad_q  scale^2 |z|^2 e E_2a |V D K'|_F^2
//
// The gradients in U, K and Q need third and fourth cumulants of the measure tilted by 2a, which are
// closed forms too (measure/higher_cumulants.h). A measure of a user without higher_cumulants()
// gets them from differences of its covariance, to about 1e-8.
//
// Tokens that depend on each other (measure/stationary.h) have the same limit and another constant.
// With G_k = Cov(z_0, z_k), y and y~ the deviations of a pair at lag k, tilted by (a, a): means
// G_k a and G_k'a, covariances G and G_k,
//
//   output  sum over all integers k of e^{a'G_k a} [ tr V G_k V' + <V G_k a, V G_k'a> ]
//   others  the same sum of e^{a'G_k a} E <X(y), X(y~)>, in closed form, because all is Gaussian
//
// kappa is this sum over its term k = 0: L such tokens are worth L/kappa independent ones.
#pragma once

#include "esscher/attention/attention.h"
#include "esscher/attention/metric.h"
#include "esscher/measure/any_measure.h"
#include "esscher/prompt/prompt.h"

namespace esscher {

// Infinite where Lambda(2a) is infinite; there the mean-square error falls more slowly than 1/L.
// NaN where tokens depend on each other and their autocovariances are not known: a mixture, product
// or sum of stationary sequences.
double asymptotic_constant(Metric metric, const AnyMeasure& mu, const Attention& attention,
                           const VectorView& z);

// The same for independent tokens of the law of one token of mu.
double independent_constant(Metric metric, const AnyMeasure& mu, const Attention& attention,
                            const VectorView& z);

// The same for a prompt: groups of fixed shares f_k leave out the spread between groups. With
// w_k = f_k e^{b_k} and W = sum w_k e^{Lambda_k(a)},
//
//   output  W^-2 sum_k f_k e^{2 b_k} { E_k[e^{2s}|Vz' - T|^2] - |E_k[e^s (Vz' - T)]|^2 }
//
// NaN where the prompt has no limit, and for gradients in U, K and Q of prompts that are not plain.
double asymptotic_constant(Metric metric, const Prompt& prompt, const Attention& attention,
                           const VectorView& z);

// Exponent of the slow regime, a prediction and not a theorem (one-big-jump heuristic):
//   gamma = min(1, (sqrt(1 + 4/lambda) - 1)/2),  D(L) ~ L^-gamma up to powers of log L
double predicted_exponent(double lambda);

}  // namespace esscher
