// Uniform laws on the sphere and on the ball of radius R in R^d. With k = R|a|, u = a/|a| and
// (log_mgf, across, along) = bessel_tilt(D, k):
//
//   Lambda(a) = log 0F1(; D/2; k^2/4)
//   m_a       = R^2 across a
//   C_a       = R^2 [ across (I - uu') + along uu' ]
//   sigma     = R/sqrt(D)
//
// Here D = d for the sphere. For the ball D = d + 2, because the uniform law on the ball of R^d is
// the projection to R^d of the uniform law on the sphere of R^{d+2}.
#pragma once

#include "esscher/measure/measure.h"

namespace esscher {

class RadialMeasure {
 public:
  [[nodiscard]] double radius() const { return radius_; }

  [[nodiscard]] Index dim() const { return dim_; }
  [[nodiscard]] Length cardinality() const { return Length::infinity(); }
  [[nodiscard]] Vector mean() const { return Vector::Zero(dim_); }
  [[nodiscard]] Matrix second_moment() const;
  [[nodiscard]] double log_mgf(const VectorView& a) const;
  [[nodiscard]] double centred_log_mgf(const VectorView& a) const { return log_mgf(a); }
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const;
  [[nodiscard]] Vector mean_shift(const VectorView& a) const { return tilted_mean(a); }
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const;
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const;
  [[nodiscard]] HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                                 const MatrixView& Y) const;
  // Each token takes D normals of the stream, scaled to length R; the first d of them are the
  // token.
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const;
  [[nodiscard]] bool strictly_sub_gaussian() const { return true; }
  [[nodiscard]] std::string name() const { return name_; }

 protected:
  RadialMeasure(const char* name, Index dim, double radius, Index sphere_dim);

 private:
  const char* name_;
  Index dim_;
  double radius_;
  Index sphere_dim_;  // D
};

class Sphere : public RadialMeasure {
 public:
  // d >= 1, R > 0.
  Sphere(Index dim, double radius);
};

class Ball : public RadialMeasure {
 public:
  // d >= 1, R > 0.
  Ball(Index dim, double radius);
};

}  // namespace esscher
