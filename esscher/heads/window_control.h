// The control of a window: the error that a tail would have, on average, if the keys behind the
// window were Gaussian with the moments of the tail, exactly and at any length. The exact keys are as
// they are, with mass B = sum_E e^{s_i} and mean value T_E; the others are n' scores s ~ N(mu,
// tau^2), values mV + (c/tau^2)(s - mu) + rho with c = Cov(V,K) a and rho independent of s. With
// Z = sum e^s, D = B + Z, S1 = sum e^s (s - mu) and P2 = sum e^{2s},
//
//   T - mV = (B/D) (T_E - mV) + (c/tau^2) S1/D + sum (e^s/D) rho
//
// and with D^-k = int t^{k-1} e^{-tD} dt / (k-1)! every expectation is one integral over u = log t,
//
//   E[B/D]      = int Bt e^{-Bt} phi^n' du            E[(B/D)^2]    = int (Bt)^2 e^{-Bt} phi^n' du
//   E[S1/D]     = n' tau int e^{-Bt} G_11 phi^{n'-1}  E[B S1/D^2]   = n' tau int Bt e^{-Bt} G_11 phi^{n'-1}
//   E[S1^2/D^2] = tau^2 int e^{-Bt} (n' G_22 phi^{n'-1} + n'(n'-1) G_11^2 phi^{n'-2})
//   E[P2/D^2]   = n' int e^{-Bt} G_20 phi^{n'-1}
//
// in the token moments of universal/token_moments.h. The accuracy is 1e-9.
#pragma once

#include <optional>

#include "esscher/heads/window.h"

namespace esscher {

struct WindowExpectations {
  double exact = 0;        // E[B/D], the share of the window
  double exact2 = 0;       // E[(B/D)^2]
  double score = 0;        // E[S1/D]
  double exact_score = 0;  // E[B S1/D^2]
  double score2 = 0;       // E[S1^2/D^2]
  double h = 0;            // E[P2/D^2]
};

// n >= 1 Gaussian scores of deviation 0 < tau <= kMaxMixtureTau (prompt/exact_mixture.h) beside a
// mass B e^{-mu} given by its logarithm.
WindowExpectations window_expectations(std::int64_t n, double tau, double log_mass);

// Expectations of one query's window; none without a tail of one component within reach.
std::optional<WindowExpectations> window_expectations(const WindowParts& parts);

// E|T - T_s|^2 where T_s [dv] is what a tail gives for these parts.
double window_control(const WindowParts& parts, const WindowExpectations& expected,
                      const VectorView& surrogate);

}  // namespace esscher
