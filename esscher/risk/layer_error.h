// Half the squared error of a layer at one query, and its gradient in the layer.
//
// Half the squared error unless another loss of task/loss.h is asked for: J = loss(out, t) then,
// and its derivative in out takes the place of out - t. Only tokens as they are serve other losses.
//
// On tokens as they are, a law or a prompt of given tokens:
//
//   J = |out - t|^2 / 2,   dV_h = (out - t) T_h',   dU_h = C_h V_h'(out - t) z'
//
// with C_h the tilted covariance of a softmax head and S for a linear one.
//
// Averaged over prompts of L tokens of a mixture sum_k p_k N(m_k, S), without drawing them. For one
// softmax head, with a = Uz, s = Sa, tau^2 = a's, any fixed centre c, e_k = m_k - c,
// q = Wz + Vc - t, and with phi_k = phi(u + a'm_k) of universal/laplace_jets.h, C = phi'' - phi',
//
//   J     = |q|^2/2 + q'V M1 + Q/2
//   M1    = int P1 F1 du                        F1 = -sum_k p_k (e_k phi_k' + s phi_k'')
//   Q     = int (P1 F2 + P2 |V F1|^2) du        F2 = sum_k p_k (alpha_k C_k + 2 beta_k C_k' + gamma C_k'')
//   alpha_k = |V e_k|^2 + tr VSV',  beta_k = (V e_k)'V s,  gamma = |V s|^2
//   P_j   = L!/(L-j)! Phi^{L-j},    Phi = sum_k p_k phi_k
//
// The centre is that of the infinite prompt, so that small errors are no differences of large
// numbers; J does not depend on it. The gradient is that of these integrals, by hand: u-derivatives
// of phi are there, and derivatives in tau^2 follow from the heat equation.
//
// For linear heads only, with f(z') = sum_h V_h z' (a_h'z'),
//
//   J = |q + E f|^2/2 + (E|f|^2 - |E f|^2)/2L,   q = Wz - t,
//
// closed forms in the moments of a mixture up to the fourth.
//
// For several softmax heads, with the xi_h = V_h (sum omega_h z' - c_h) of the heads
// and r = Wz + sum_h V_h c_h - t,
//
//   J = |r|^2/2 + sum_h (r'E xi_h + E|xi_h|^2/2) + sum_{h<g} E xi_h'xi_g,
//
// in which terms of one head are those above and terms of pairs are integrals over two tilts
// (universal/two_tilts.h), with their gradients. Other layers have no formula.
#pragma once

#include "esscher/base/length.h"
#include "esscher/risk/layer.h"
#include "esscher/task/loss.h"
#include "esscher/task/token_law.h"

namespace esscher {

// What the layer says at the query z on tokens as they are.
Vector layer_output(const Layer& layer, const AnyMeasure& tokens, const VectorView& z);

// The gradient is added to *gradient. For a target that is random still, its mean.
double layer_error(const Layer& layer, const AnyMeasure& tokens, const VectorView& z,
                   const VectorView& target, Layer* gradient = nullptr,
                   TaskLoss loss = TaskLoss::squared);

// No head, softmax heads only, or linear heads only.
bool has_prompt_formula(const Layer& layer);
// The formula is one of pairs of heads, which cost milliseconds for each query.
bool reads_pairs(const Layer& layer);

// The average over prompts of L tokens; at L = infinity the error on the law itself, for any layer.
// Throws CapabilityError for a layer without a formula.
double prompt_error(const Layer& layer, const TokenLaw& tokens, Length L, const VectorView& z,
                    const VectorView& target, Layer* gradient = nullptr);

}  // namespace esscher
