// Mean-square errors of finite prompts from what softmax reads of Gaussian-mixture tokens: in
// component k, of weight p_k, the score is s = mu_k + tau_k g, g ~ N(0,1), and the value has mean
// m_k, covariance c_k with the score and total variance v_k. With m = the limit (the mean value
// under the tilted weights p_k E_k[e^s]) and zeta = value - m,
//
//   E|sum omega zeta|^2 = L int F_2[|zeta|^2] phi^{L-1} du + L(L-1) int |F_1[zeta]|^2 phi^{L-2} du
//
// with the token moments of score_lattice.h and phi = 1 - psi. The same integrals as those of
// exact_mixture.h, by a coarser rule: within 1e-6 of them for L up to 10^9, in about 0.1 ms.
#pragma once

#include <cstdint>

#include "esscher/base/linalg.h"

namespace esscher {

struct ScoreMixture {
  Vector weights;   // [k], sum 1; components of weight 0 do not take part
  Vector mu;        // [k]
  Vector tau2;      // [k]
  Matrix mean;      // [k,dv]
  Matrix cross;     // [k,dv] Cov(value, score)
  Vector variance;  // [k] trace of the covariance of the value
};

// The value of an infinite prompt [dv].
Vector limit(const ScoreMixture& mixture);

// E|sum omega zeta|^2 over prompts of L >= 1 tokens; some weight is positive. The cost grows like
// max tau^2.
double mean_square_error(const ScoreMixture& mixture, std::int64_t L);

}  // namespace esscher
