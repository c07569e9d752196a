// Finite Gaussian prompts without sampling: tokens iid N(m,G), a = U z, tau^2 = a'Ga, and the
// universal functions of (L, tau) from universal/universal.h. With b = Ga/tau, R = G - bb':
//
//   E[T_hat]       = Vm + (1 - H) V G a        (a finite prompt pulls the output towards Vm)
//   E|T_hat - T|^2 = |Vb|^2 M2c/tau^2 + tr(VRV') H
//   E|A(Chat - G)B'|_F^2
//     = |Ab|^2 |Bb|^2 E[(v-tau^2)^2]/tau^4
//     + (|Ab|^2 tr BRB' + |Bb|^2 tr ARA' + 2c) E[q]/tau^2
//     - 2c E[(v-tau^2) h]/tau^2
//     + |ARB'|_F^2 E[h^2]
//     + (tr ARA' tr BRB' + |ARB'|_F^2) E[n2],         c = b'A'A R B'B b
//
// The error of each metric is a factor times one of these:
//
//   output   1                the second line
//   grad_V   d_v              the second line with V = I
//   grad_U   |z|^2            the third formula with A = V, B = I
//   grad_K   scale^2 |Qz|^2   the third formula with A = V, B = I
//   grad_Q   scale^2 |z|^2    the third formula with A = V, B = K
//
// tau may be 0 and G may be singular. The mean m only moves the output. The formulas serve
// tau <= kMaxTau; beyond it a CapabilityError names the sampled engine.
#pragma once

#include "esscher/attention/attention.h"
#include "esscher/attention/metric.h"
#include "esscher/base/length.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/universal/universal.h"

namespace esscher {

// E|X_hat - X|^2 = |E X_hat - X|^2 + E|X_hat - E X_hat|^2.
struct ErrorParts {
  double bias2 = 0;
  double variance = 0;
  [[nodiscard]] double total() const { return bias2 + variance; }
};

// tau = sqrt(a'Ga) of any tilt a [d]: the standard deviation of the scores.
double score_tau(const GaussianLaw& law, const VectorView& a);

// The same at a = U z; it is refused beyond kMaxTau (CapabilityError).
double score_deviation(const GaussianLaw& law, const Attention& attention, const VectorView& z);

// E[T_hat(z)] [dv] at prompt length L; T itself at L = infinity.
Vector expected_output(const GaussianLaw& law, const Attention& attention, const VectorView& z,
                       Length L);

// 1/H, the number of tokens over which the query effectively averages: L at tau = 0, about
// L e^{-tau^2} for long prompts.
double effective_sample_size(const GaussianLaw& law, const Attention& attention,
                             const VectorView& z, Length L);

// 0 at L = infinity. grad_k and grad_q need an Attention made from K and Q (CapabilityError).
ErrorParts error_parts(Metric metric, const GaussianLaw& law, const Attention& attention,
                       const VectorView& z, Length L);
double mean_square_error(Metric metric, const GaussianLaw& law, const Attention& attention,
                         const VectorView& z, Length L);

// The same from universal functions that the caller has, for example from a UniversalTable at
// tau = score_deviation(..). output and grad_v read H and M2c_ratio only.
ErrorParts error_parts(Metric metric, const GaussianLaw& law, const Attention& attention,
                       const VectorView& z, const Universal4& u);

}  // namespace esscher
