// Two token laws of the literature on self-attention, with their limit formulas. A token of the prompt
// is the query.
//
// Equiangular tokens, x_i = sqrt(rho) x_0 + sqrt(1-rho) xi_i in high dimension: |x_i| = 1 and
// <x_i,x_j> = rho. Scores beta <x_i,x_j> with beta = gamma log n. A token weighs
//
//   w = 1 / (1 + (n-1) n^{-gamma (1-rho)})
//
// on itself, and the inner product of two new tokens of unit length tends to 1, 4 rho/(1+3 rho) and
// rho for gamma below, at and above 1/(1-rho). At n tokens w = 1/2 at log(n-1) / ((1-rho) log n).
//
// Uniform tokens on the sphere of R^d. Gaps D = beta (1 - <x,y>) below the largest possible score are
// counted by N(D) = kappa D^p, p = (d-1)/2, where beta = (c_d n / kappa)^{1/p}: the scale n^{2/(d-1)},
// n/(2 kappa) for d = 3. With y = e^{u-D},
//
//   E H = int N_2 e^{-W} du,  W = int (1 - e^-y) dN,  N_2 = int y^2 e^-y dN          as n grows
//   d = 3:  kappa int (1 - e^{-t}(1+t))/t exp(-kappa (gamma + log t + E_1(t))) dt
//
// and at n tokens the same with the law of D on [0, 2 beta] and (1 - psi)^{n-1}. Sources are in
// docs/references.md.
#pragma once

#include <vector>

#include "esscher/base/cells.h"

namespace esscher {

struct EquiangularRow {
  double L = 2;
  double rho = 0;
  double gamma = 0;
  double beta = 0;
  double self_weight = 0;
  double inner_product = 0;
  double predicted_inner_product = 0;
  double boundary = 0;
  double predicted_boundary = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("rho", row.rho, "", "inner product of two tokens");
    column("gamma", row.gamma, "", "scores are gamma log L times inner products");
    column("beta", row.beta, "", "gamma log L");
    column("self_weight", row.self_weight, "", "softmax weight of a token on itself");
    column("inner_product", row.inner_product, "", "of two new tokens of unit length, exact");
    column("predicted_inner_product", row.predicted_inner_product, "", "its limit");
    column("boundary", row.boundary, "", "the gamma at which a token weighs 1/2 on itself");
    column("predicted_boundary", row.predicted_boundary, "", "its limit 1/(1 - rho)");
  }
};

// ArgumentError unless L >= 2, 0 <= rho < 1 and gamma >= 0.
EquiangularRow equiangular_row(double L, double rho, double gamma);

struct SphereRow {
  double L = 2;
  std::int64_t dim = 3;
  double kappa = 1;
  double beta = 0;
  double H = 0;
  double predicted_H = 0;
  double ess = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("dim", row.dim, "", "dimension of the space of the sphere");
    column("kappa", row.kappa, "", "expected tokens within a gap of 1 below the largest score");
    column("beta", row.beta, "", "scale of the scores");
    column("H", row.H, "", "E sum omega^2, exact");
    column("predicted_H", row.predicted_H, "", "its limit");
    column("ess", row.ess, "tokens", "effective sample size 1/H");
  }
};

// ArgumentError unless 2 <= L <= 1e300, dim >= 2 and kappa is not too small: 40/2500^p.
SphereRow sphere_row(double L, std::int64_t dim, double kappa);
// beta at this length, and the limit of E H.
double sphere_scale(double L, std::int64_t dim, double kappa);
double sphere_limit(std::int64_t dim, double kappa);
// E sum omega^2 of L uniform tokens with scores beta <x,y>, |x| = 1.
double sphere_weight_square(double L, std::int64_t dim, double beta);

}  // namespace esscher
