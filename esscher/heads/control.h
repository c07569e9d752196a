// The control of a head: the error that the Gaussian surrogate would have, on average, if the
// prompt were n Gaussian tokens with the moments of the head, with the surrogate fitted to that
// same prompt.
//
// Scores are s_l ~ N(0, tau^2), values v_l = mV + (c / tau^2) s_l + rho_l with c = Cov(V,K) a and
// rho independent of s. With S = sum omega s, v = sum omega (s-S)^2, and sbar and vhat the sample
// mean and variance of the scores,
//
//   T - Vbar             = (c/tau^2) (S - sbar)        + sum (omega_l - 1/n) rho_l
//   T - Vbar - Covhat a  = (c/tau^2) (S - sbar - vhat) + sum (omega_l - 1/n - (s_l - sbar)/n) rho_l
//
// Gaussian integration by parts, E[s_j F] = tau^2 E[dF/ds_j], where S depends on the scores too,
// gives every mixed moment from the universal functions (universal/universal.h):
//
//   E[S sbar] = tau^2/n,   E[S vhat] = tau^2 M1 (1 - 1/n) + tau^2 (M1 + E v)/n
#pragma once

#include <cstdint>
#include <limits>

#include "esscher/base/length.h"
#include "esscher/universal/score_mixture.h"

namespace esscher {

// Moments of one query's scores and values.
struct ScoreMoments {
  double tau2 = 0;       // variance of the scores
  double signal2 = 0;    // |Cov(V,K) a|^2
  double value_var = 0;  // trace of Cov(V)
};

struct Control {
  double error2 = 0;   // E|T - Vbar - Covhat a|^2
  double signal2 = 0;  // E|T - Vbar|^2

  // sqrt(error2 / signal2): 1 means no better than the mean value; 0 where nothing moves.
  [[nodiscard]] double relative() const;
};

// n >= 1. Beyond kMaxTau (universal/universal.h) every prompt is frozen on its largest scores, and
// S and v are extrapolated as multiples of tau.
Control gaussian_control(std::int64_t n, const ScoreMoments& query);

// Smallest L with relative() <= tolerance, to one part in a thousand; infinity if there is none up
// to 10^15.
Length linear_from(const ScoreMoments& query, double tolerance);

// The control of a mixture: sqrt(E|T_hat - T_mix|^2) if the prompt were n tokens drawn from the
// mixture fitted to that prompt, exactly (universal/score_mixture.h, to 1e-6). T_mix is the limit
// of the mixture that is drawn from; it is not fitted again to each draw. Compare this number with
// the error on unseen keys. It is kNoControl where the scores of some component deviate by more
// than kMaxMixtureTau.
inline constexpr double kNoControl = std::numeric_limits<double>::quiet_NaN();
double mixture_control(const ScoreMixture& scores, double n);

}  // namespace esscher
