// Finite prompts of Gaussian-mixture tokens without sampling: weights p_k, components N(m_k,G_k).
// Given the component, a token is z = m_k + b_k g + xi with g ~ N(0,1), b_k = G_k a/tau_k, and xi ~
// N(0, R_k) independent of its score, R_k = G_k - b_k b_k'. The token moments of prompt/universal.h
// become sums over components; with zeta = z - m_a, m_a the tilted mean of the mixture,
//
//   E[T_hat] - T   = L int V F_1[zeta] phi^{L-1} du
//   E|T_hat - T|^2 = L int F_2[|V zeta|^2] phi^{L-1} du + L(L-1) int |V F_1[zeta]|^2 phi^{L-2} du
//
// F_1[zeta] vanishes to first order in the bulk; there it is computed from 1 - e^-y, not by
// subtraction. Metrics grad_u, grad_k and grad_q need fourth moments across components and are
// refused with a CapabilityError that names the sampled engine; so are scores with some tau_k >
// kMaxMixtureTau.
#pragma once

#include "esscher/prompt/exact.h"

namespace esscher {

// The nodes of a component grow like tau^2.
inline constexpr double kMaxMixtureTau = 40.0;

Vector expected_output(const GaussianMixtureLaw& law, const Attention& attention,
                       const VectorView& z, Length L);

// 1 / E[sum omega^2], as for one Gaussian: E[sum omega^2] = L int F_2[1] phi^{L-1} du.
double effective_sample_size(const GaussianMixtureLaw& law, const Attention& attention,
                             const VectorView& z, Length L);

ErrorParts error_parts(Metric metric, const GaussianMixtureLaw& law, const Attention& attention,
                       const VectorView& z, Length L);
double mean_square_error(Metric metric, const GaussianMixtureLaw& law, const Attention& attention,
                         const VectorView& z, Length L);

}  // namespace esscher
