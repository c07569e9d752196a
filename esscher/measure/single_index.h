// Single-index tokens z' = (x, y) in R^{d+1}: x ~ N(0, Sigma), y = g(w'x) + noise of variance
// sig2. For a tilt (alpha, beta), with h = w'Sigma alpha and rho^2 = w'Sigma w,
//
//   Lambda = alpha'Sigma alpha/2 + Psi(h, beta)
//   Psi    = log E e^{beta g(H)} + beta^2 sig2/2,   H ~ N(h, rho^2)
//   m_x    = Sigma alpha + Sigma w Psi_h            m_y = Psi_beta
//
// At beta = 0 the mean of y is the link smoothed by a Gaussian of variance rho^2 at h: an infinite
// prompt applies a smoothed link to what linear attention computes.
//
// x = (Sigma w/rho^2) w'x + a Gaussian that is independent of w'x, so the law is a sum:
//
//   z' = B (H, g(H)) + N(0, blockdiag(Sigma - Sigma w w'Sigma/rho^2, sig2))      (link_pair.h)
//
// `expanded()` is that sum, or a Gaussian where g is affine or w'x = 0. All closed forms are its.
#pragma once

#include "esscher/measure/any_measure.h"
#include "esscher/measure/link.h"

namespace esscher {

class SingleIndex {
 public:
  // cov [d,d] symmetric PSD (Sigma), index [d] (w), noise_variance >= 0.
  SingleIndex(const MatrixView& cov, const VectorView& index, Link link, double noise_variance = 0);

  [[nodiscard]] const Matrix& cov() const { return cov_; }
  [[nodiscard]] const Vector& index() const { return index_; }
  [[nodiscard]] const Link& link() const { return link_; }
  [[nodiscard]] double noise_variance() const { return noise_variance_; }
  [[nodiscard]] double rho() const { return rho_; }
  [[nodiscard]] const AnyMeasure& expanded() const { return law_; }

  [[nodiscard]] Index dim() const { return index_.size() + 1; }
  [[nodiscard]] Length cardinality() const { return Length::infinity(); }
  [[nodiscard]] Vector mean() const { return law_.mean(); }
  [[nodiscard]] Matrix second_moment() const { return law_.second_moment(); }
  [[nodiscard]] double log_mgf(const VectorView& a) const;
  [[nodiscard]] double centred_log_mgf(const VectorView& a) const;
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const;
  [[nodiscard]] Vector mean_shift(const VectorView& a) const;
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const;
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const;
  [[nodiscard]] HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                                 const MatrixView& Y) const;
  // x and the noise are drawn, and the label is computed of x: the sum is not sampled.
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const;  // infinite if g is of degree two
  [[nodiscard]] bool strictly_sub_gaussian() const { return law_.strictly_sub_gaussian(); }
  [[nodiscard]] std::string name() const { return "single_index"; }

 private:
  Matrix cov_;
  Vector index_;
  Link link_;
  double noise_variance_;
  double rho_ = 0;
  AnyMeasure law_;
};

}  // namespace esscher
