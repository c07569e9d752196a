// Two softmax heads on one prompt. A token has two scores, s for the weights omega of the first
// head and s' for omega' of the second, and two values f, g in R^m; the prompt has L tokens. Then
//
//   E[(sum omega f)'(sum omega' g)] = int int { L F_11[f'g] phi^{L-1}
//                                             + L(L-1) F_10[f]'F_01[g] phi^{L-2} } du du'
//   F_ij[h](u,u') = E[y^i y'^j h e^{-y-y'}],   y = e^{u+s}, y' = e^{u'+s'},   phi = F_00[1].
//
// Tokens are a mixture sum_k p_k of Gaussians of one covariance, of which scores and values are
// linear functions. Let s be the wider score. Given its component, s' = mu'_k + ratio (s - mu_k) +
// r with r ~ N(0, rho^2) independent of s, so that with the derivatives Psi_j of E e^{-e^{v+r}}
// (laplace_jets.h) and nodes s_i of s every F is a product of two matrices,
//
//   F(u,u') = sum_i w_i  A(u + s_i)  B_i(u' + s'_i),   A = e^-y or y e^-y,   B_i = sum_j b_ij Psi_j.
//
// Values are linear in r given s, and r h(r) averages to rho^2 h'(r); this gives the b_ij. Nothing
// is divided by rho, so that heads with parallel tilts, where rho = 0, are no special case.
//
// The rules are trapezoidal in u, u' and s. Integrands are analytic in strips of width pi/2 around
// the real axis, so that the step 1/3 leaves 1e-11. A value of mean 0 under its tilted weights
// keeps its relative accuracy as long as L eps does: see the tests for L up to 10^4.
#pragma once

#include <cstdint>

#include "esscher/base/linalg.h"

namespace esscher {

struct TwoTilts {
  Vector weights;  // p [K] > 0, sum 1
  Matrix mu;       // means of (s, s') [K,2]
  Matrix cov;      // covariance of (s, s') [2,2], the same in every component
  Matrix f, g;     // means of the values [K,m]
  Matrix f_cross;  // Cov(f, s), Cov(f, s') [m,2]
  Matrix g_cross;  // [m,2]
  double fg = 0;   // tr Cov(f, g)

  // The same with the two heads exchanged.
  [[nodiscard]] TwoTilts exchanged() const;
  // Throws DimensionError naming the field that does not fit the others.
  void check() const;
};

// The value, and its derivatives in the fields: dvalue = sum of entries of gradient times entries
// of the change, over all four entries of cov. Every F is a sum of derivatives of phi_k(u, u') = E
// e^{-y-y'}, because y e^-y is the derivative of -e^-y and values follow scores by Stein's lemma,
//
//   F_10[f]  = -sum_k p_k (f_k d_1 + f_s d_11 + f_s' d_12) phi_k,   f_s = Cov(f, s),
//
// and so on; derivatives in mu are d_1 and d_2 of that, those in cov halves of d_11, d_12 and d_22.
struct TwoTiltsGradient {
  double value = 0;
  TwoTilts slope;  // without weights
};
TwoTiltsGradient two_tilts_gradient(const TwoTilts& tokens, std::int64_t L);

// E[(sum omega f)'(sum omega' g)] over prompts of L >= 1 tokens. The time grows like K m times the
// deviations of the scores; it is about 1 ms for K = m = 1 and deviations near 1.
double two_tilts(const TwoTilts& tokens, std::int64_t L);

}  // namespace esscher
