// Student tokens z' = m + sqrt(W) G^{1/2} g, g ~ N(0,I), W = nu / chi-square(nu): an elliptical law
// whose tails fall like |z'|^{-nu}. The mean is m for nu > 1, the covariance nu/(nu-2) G for
// nu > 2; otherwise they do not exist.
//
//   Lambda(a) = <a,m> if Ga = 0, else infinite
//
// So a prompt of Student tokens has no limit: as it grows, its largest score outgrows all others,
// and the output along a grows without bound. Everything that needs Lambda at such a tilt throws a
// DomainError that says so. Finite prompts are ordinary: tokens are sampled, and the score law is a
// Student law with
//
//   E[z'|s] = m + ((s - <a,m>)/tau^2) Ga,   Cov(z'|s) = c(s) (G - Ga(Ga)'/tau^2),   tau^2 = a'Ga
//   c(s)    = (nu + (s - <a,m>)^2/tau^2) / (nu - 1)
#pragma once

#include "esscher/measure/measure.h"

namespace esscher {

class Student {
 public:
  // nu > 0, mean [d], cov [d,d] symmetric PSD: the covariance G where W = 1.
  Student(double nu, const VectorView& mean, const MatrixView& cov);
  // Centred.
  Student(double nu, const MatrixView& cov);

  [[nodiscard]] double nu() const { return nu_; }
  [[nodiscard]] const Vector& centre() const { return centre_; }  // m, also where no mean exists
  [[nodiscard]] const Matrix& cov() const { return cov_; }

  [[nodiscard]] Index dim() const { return centre_.size(); }
  [[nodiscard]] Length cardinality() const { return Length::infinity(); }
  // DomainError for nu <= 1, and for second moments for nu <= 2.
  [[nodiscard]] Vector mean() const;
  [[nodiscard]] Matrix second_moment() const;
  [[nodiscard]] double log_mgf(const VectorView& a) const;
  [[nodiscard]] double centred_log_mgf(const VectorView& a) const;
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const;
  [[nodiscard]] Vector mean_shift(const VectorView& a) const;
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const;
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const;
  // Token l takes normals l*rank .. l*rank + rank - 1 of split(0) and a chi-square of
  // split(1).split(l).
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const;  // infinite unless G = 0
  [[nodiscard]] std::string name() const { return "student"; }

 private:
  // Throws unless Ga = 0.
  void check_flat(const VectorView& a) const;

  double nu_;
  Vector centre_;
  Matrix cov_;
  Matrix factor_;  // F [d,rank] with G = F F'
};

}  // namespace esscher
