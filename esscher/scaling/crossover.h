// One prediction for all phases, which does not jump between them. With y = e^{s-u} and
//
//   W(u) = n E[1 - e^-y]      N_j(u) = n E[y^j e^-y]
//
// e^{-W(u)} is the distribution function of log Z - log E, Z = sum e^s and E a standard exponential
// variable, and E sum omega^2 = int N_2 e^{-W} du, up to 1/n. At the place u* where W = 1 both are
// taken for exponentials in u, of rates
//
//   a = -W' = N_1,     b = -N_2'/N_2 = 2 - N_3/N_2
//
// and the integrals close:
//
//   E H     = N_2 Gamma(b/a) / a
//   E log Z = u* + gamma (1/a - 1)                        gamma is Euler's constant
//   needle  = int_0^inf exp(-x - (x e^{u*-c})^a) dx       of score c
//   D(n)    = P Gamma(p/a)/a + |R|^2 Gamma(r/a)/a
//
// The error is exactly int (P + |R|^2) e^{-W} du with P = n E[|x|^2 y^2 e^-y] and R = n E[x y e^-y], where x
// is what a token is read as, less the value of the infinite prompt; p and r are the rates of P and
// |R|^2 at u*. Gaussian scores are read as themselves, x = s - tau^2, so that by parts
//
//   P = tau^2 N_2 + tau^4 (N_2 - 3 N_3 + N_4)     R = -tau^2 N_2
//
// Averaging scores have a = 1 and b = 2, intermediate ones a = 1 and b = k, frozen ones
// a = b = sqrt(2)/c, which gives the formulas of scaling.h; between them a and b change smoothly, and
// for Gaussian scores of deviation tau near tau = sqrt(2 log n),
//
//   E H = m(y) / tau,  m the inverse Mills ratio phi/Phi,  tau^2/2 + tau y = log n + log Phi(y)
//
// (freezing_crossover), which is 1/sqrt(pi log n) at y = 0.
#pragma once

#include "esscher/scaling/score_model.h"

namespace esscher {

struct Crossover {
  double H = 0;
  double free_energy = 0;  // E log Z
  double place = 0;        // u*
  double rate = 0;         // a

  [[nodiscard]] double needle(double score) const;
};

// log n up to that of ScoreModel::longest(). The scores at factor f must have a deviation up to
// kMaxTau and, for a layer, a score law. ArgumentError unless log n > 0.
Crossover crossover(const ScoreModel& scores, double f, double log_n);

// Its entropy E log Z - E sum omega s; the second is the slope of E log Z in log f, by a difference.
double crossover_entropy(const ScoreModel& scores, double f, double log_n);

// D(n): of Gaussian scores E(S - tau^2)^2 / tau^2, of a layer the mean squared error of its output. It may
// not exist (NaN) where the infinite prompt has no value.
double crossover_error(const ScoreModel& scores, double f, double log_n);

// E H of Gaussian scores near the frozen phase, to leading order.
double freezing_crossover(double tau, double log_n);

}  // namespace esscher
