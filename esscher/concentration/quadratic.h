// Moments of quadratic forms of a Gaussian vector, over the reals and over the complex numbers.
//
//   q_i = x' N_i x,   x ~ N(mu, S),   S = diag(sigma),   v_i = N_i mu
//
// The moments E[q_i], E[q_i q_j], E[q_i q_j q_k] follow from the joint cumulants
//
//   k(i)     = tr N_i S + mu'v_i
//   k(i,j)   = 2 tr N_i S N_j S + 4 v_i'S v_j
//   k(i,j,k) = 8 tr N_i S N_j S N_k S
//              + 8 [ v_i'S N_j S v_k + v_i'S N_k S v_j + v_j'S N_i S v_k ]
//
// The contour integrals of tau_law.h need them under a complex tilt, that is with complex sigma and
// mu.
#pragma once

#include <complex>
#include <vector>

#include "esscher/base/linalg.h"

namespace esscher {

// Indices of the factors: {} is the constant 1, {0,2} is q_0 q_2; at most three factors.
using FormProduct = std::vector<int>;

template <class Scalar>
using VectorOf = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

// forms: symmetric [n,n]; sigma, mu [n]. Scalar is double or std::complex<double>.
template <class Scalar>
class QuadraticMoments {
 public:
  QuadraticMoments(const std::vector<Matrix>& forms, const VectorOf<Scalar>& sigma,
                   const VectorOf<Scalar>& mu);

  [[nodiscard]] Scalar expect(const FormProduct& product) const;

 private:
  [[nodiscard]] Scalar cumulant(int i) const;
  [[nodiscard]] Scalar cumulant(int i, int j) const;
  [[nodiscard]] Scalar cumulant(int i, int j, int k) const;

  const std::vector<Matrix>& forms_;
  VectorOf<Scalar> sigma_;
  std::vector<VectorOf<Scalar>> v_;  // N_i mu
  std::vector<Scalar> first_;
  bool centred_;
};

extern template class QuadraticMoments<double>;
extern template class QuadraticMoments<std::complex<double>>;

}  // namespace esscher
