// The Laplace function of one token whose score is N(v, tau^2), with six derivatives in v:
//
//   phi(v) = E e^{-y},   y = e^{v + tau g},   g ~ N(0,1)
//
// These derivatives are all that expectations over prompts of Gaussian mixtures ask for. With
// C = phi'' - phi', integration by parts against the Gaussian gives
//
//   E[y e^-y]   = -phi'      E[y g e^-y]   = -tau phi''
//   E[y^2 e^-y] = C          E[y^2 g e^-y] = tau C'         E[y^2 g^2 e^-y] = C + tau^2 C''
//
// and the heat equation gives derivatives in the deviation: d phi / d(tau^2) = phi''/2.
// Expectations and their gradients are therefore polynomials in phi and its derivatives
// (risk/prompt_error.h).
//
// Derivative j is E D_j(y), D_0 = e^-y, D_{j+1} = y D_j'. It is computed on a lattice of v, by the
// trapezoidal rule in g, whose integrands are analytic in the strip |Im log y| < pi/2. Between
// lattice points it is interpolated by polynomials through twelve points, of distance 1/12 or,
// since wide scores smooth phi, tau/24. This leaves 1e-11 of phi and phi', 5e-9 of the fourth
// derivative, which values read, and 5e-7 of the sixth, which only gradients read.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

// 1 - e^-y, then D_1 .. D_6 at y = e^log_y and a 0: eight doubles.
void laplace_functions(double log_y, double* out);

class LaplaceJets {
 public:
  static constexpr Index kOrders = 7;  // place 0 holds 1 - phi, place j the derivative j of phi

  // Serves v_min <= v <= v_max; 0 <= tau <= kMaxTau.
  LaplaceJets(double tau, double v_min, double v_max);

  static constexpr double kMaxTau = 600;

  // Rows of orders [n,kOrders] at v, v + kStep, v + 2 kStep, ..; an integral over v may take this
  // step.
  static constexpr double kStep = 1.0 / 6;
  [[nodiscard]] Matrix rows(double v, Index n) const;

 private:
  void fill_direct();
  void fill_by_lattice();

  double tau_;
  Index refined_;     // points of the lattice in one kStep: 2 or 1
  Index coarse_;      // steps kStep between two points, if refined_ is 1
  double step_;       // kStep coarse_/refined_
  double first_ = 0;  // v of row 0
  Matrix orders_;     // [rows,kOrders + 1], the last column is 0: rows of eight doubles
};

}  // namespace esscher
