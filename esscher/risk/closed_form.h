// Exact risks of in-context linear regression with Gaussian features, and their gradients in
// (U, r). With U = [[alpha, *], [beta', *]] and r = (v_x, v_y), S = prompt_cov, Sq = query_cov,
//
//   p = alpha'S v_x + v_y sig2 beta,   M = S v_x beta' + v_y S alpha - I,
//   B(p, M) = p'Sq p + s2 tr(M Sq M') + 2 s2 tr(S) v_y p'Sq beta
//             + v_y^2 s2^2 (tr(S)^2 + 2 tr S^2) beta'Sq beta
//
//   R_inf   = B(p, M)/2                                       softmax or linear, infinite prompt
//   R_L^lin = R_inf + (E1 + E2)/(2L)                          linear attention, prompt length L
//   E1 = E (r'G_w a)^2 = B(p, M + I),    E2 = E (r'G_w r)(a'G_w a)
//
// (+ sig2/2 when the target is noisy). These are halves of mean squared errors. For features that
// are not Gaussian they do not hold: CapabilityError names simulated_risk (sample_risk.h).
#pragma once

#include "esscher/base/length.h"
#include "esscher/risk/readout.h"
#include "esscher/task/regression.h"

namespace esscher {

// R_inf at (U, r); if `gradient` is given it is overwritten by dR/d(U, r).
double limit_risk(const LinearRegressionTask& task, const Readout& at, Readout* gradient = nullptr);

// R_L of linear attention r' (1/L sum z z') U (x,0); Length::infinity() gives R_inf.
double linear_risk(const LinearRegressionTask& task, const Readout& at, Length length,
                   Readout* gradient = nullptr);

// Gamma_N = (1 + 1/N) S + (tr(S) + sig2/s2)/N I: the best block W = b A of linear attention at
// length N is Gamma_N^-1, whatever Sq ([ZFB24] for sig2 = 0, s2 = 1, Sq = S). Gamma_infinity = S.
Matrix effective_covariance(const LinearRegressionTask& task, Length length);

// Where the block flow ends: b A = Gamma_N^-1 with |A|_F^2 - b^2 = imbalance kept; for the balanced
// start (imbalance 0) b = tr(Gamma_N^-2)^{1/4}. Throws ArgumentError for singular Gamma_N.
Readout block_optimum(const LinearRegressionTask& task, Length length, double imbalance = 0);

}  // namespace esscher
