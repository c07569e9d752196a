// The law of tau^2 = z'A z for a Gaussian query z ~ N(m, S). Errors of a Gaussian prompt depend on
// the query through tau^2 and through quadratic forms only. A is PSD [d,d] (U'GU). In the
// eigenbasis of B = S^{1/2} A S^{1/2}, whose eigenvalues are lambda_i,
//
//   tau^2 = c0 + sum_i lambda_i (x_i + shift_i)^2,   x_i iid N(0,1)
//
// Averages of the form E[P(z) f(tau)], P a product of quadratic forms z'N z, become one-dimensional
// sums. For each node t the weight is the density of tau^2 weighted by P,
//
//   g_P(t) = (1/2 pi i) int M_P(s) e^{-s t} ds,   M_P(s) = E[P(z) e^{s tau^2}]
//
// M_P has a closed form by quadratic.h. The integral runs along a parabola through the saddle point
// of e^{-st} M(s), bent to the right around the branch cut. There the trapezoidal rule converges
// geometrically, and the result keeps its relative accuracy far into the tail. The average over
// queries therefore has no sampling error in any dimension, also where rare queries dominate it.
// The weights do not depend on f, so one rule serves every prompt length.
#pragma once

#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/concentration/quadratic.h"

namespace esscher {

class TauLaw {
 public:
  // A, S PSD [d,d], m [d]; any of them may be singular or zero.
  TauLaw(const MatrixView& A, const VectorView& m, const MatrixView& S);

  // Largest eigenvalue of B: E e^{theta tau^2} is finite iff 2 theta lambda < 1.
  [[nodiscard]] double lambda() const { return lambda_; }
  [[nodiscard]] double mean() const;  // E tau^2

  // P(tau^2 > t).
  [[nodiscard]] double tail(double t) const;

  // E[prod_i z'N_i z * e^{theta tau^2}]; infinity if 2 theta lambda >= 1. forms symmetric [d,d].
  [[nodiscard]] double tilted_moment(const std::vector<Matrix>& forms, const FormProduct& product,
                                     double theta) const;

  // E[P_j(z) f(tau)] = sum_k f(tau_k) weight(k,j) for smooth f of at most polynomial growth, to
  // relative 1e-10, also when f grows like e^{tau^2}/L up to tau^2 ~ 2 log L, L <= 10^15.
  struct Rule {
    Vector tau;      // [n]
    Matrix weights;  // [n, products]
  };
  [[nodiscard]] Rule rule(const std::vector<Matrix>& forms,
                          const std::vector<FormProduct>& products) const;
  // For each node [n] its largest weight relative to the largest of the column. Nodes where this is
  // tiny can be dropped.
  static Vector relative_size(const Matrix& weights);

 private:
  [[nodiscard]] std::vector<Matrix> in_basis(const std::vector<Matrix>& forms) const;
  // K(s) = log E e^{s (tau^2 - c0)} and derivatives, s < 1/(2 lambda).
  struct Cumulants {
    double K1, K2, K3;
  };
  [[nodiscard]] Cumulants cumulants(double s) const;
  template <class Scalar>
  [[nodiscard]] Scalar log_mgf(Scalar s) const;
  template <class Scalar>
  [[nodiscard]] QuadraticMoments<Scalar> tilted(const std::vector<Matrix>& forms, Scalar s) const;
  // Root of K'(s) - pole/s = t in (lower end, 1/(2 lambda)).
  [[nodiscard]] double saddle(double t, double pole) const;
  void density(double t, const std::vector<Matrix>& forms, const std::vector<FormProduct>& products,
               Eigen::Ref<Vector> out) const;

  Vector m_;
  Matrix F_;         // z = m + F x, x in the eigenbasis [d,r]
  Vector lambda_i_;  // [r], may contain zeros
  Vector shift_;     // [r], 0 where lambda is 0
  double lambda_ = 0;
  double c0_ = 0;
};

}  // namespace esscher
