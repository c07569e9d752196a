// Linear attention that is fitted to finitely many contexts, in the setting of Lu et al. [LLZ25]:
//
//   x ~ N(0, I/d),   tasks w,   y = w'x + noise of variance rho,   contexts of l examples and a query
//   v = ( (d/l) sum y_i x_i, (1/l) sum y_i^2 ) in R^{d+1},   prediction x' Gamma v,  Gamma [d,d+1]
//
// Gamma is the least-squares fit of smallest norm to n contexts with k tasks. Its error on fresh tasks
// w ~ N(0, I) is a quadratic form,
//
//   e(Gamma) = 1 + rho - (2/d) tr Gamma_x + (1/d)( b_x |Gamma_x|^2 + b_y |gamma_y|^2 ),
//   b_x = 1 + (d (1 + rho) + 1)/l,   b_y = ((1 + rho)^2 + 2/d)(1 + 2/l)
//
// and tends to e_ICL(tau, alpha, kappa, rho) as d grows with l = alpha d, n = tau d^2, k = kappa d.
#pragma once

#include <cstdint>

#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"

namespace esscher::paper {

struct Pretraining {
  Index dim = 16;
  double alpha = 1;  // l/d
  double tau = 1;    // n/d^2
  double kappa = 0;  // k/d tasks of length sqrt(d); 0 for a fresh task in every context
  double rho = 0.01;
};

// e(Gamma), Gamma [d,d+1].
double context_error(const Pretraining& setting, const MatrixView& Gamma);

// e(Gamma) of the fit to one draw of the contexts.
double fitted_error(const Pretraining& setting, const Stream& stream);

// e_ICL without ridge (their Result 1), tau != 1, kappa = infinity for fresh tasks.
double proportional_error(double tau, double alpha, double kappa, double rho);

}  // namespace esscher::paper
