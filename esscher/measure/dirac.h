// All mass on one point x of R^d:
//
//   Lambda(a) = <a,x>,  m_a = x,  C_a = 0,  sigma = 0
//
// A prompt of such tokens has the output V x at every length.
#pragma once

#include "esscher/measure/measure.h"

namespace esscher {

class Dirac {
 public:
  // point [d], d >= 1, finite.
  explicit Dirac(const VectorView& point);

  [[nodiscard]] const Vector& point() const { return point_; }

  [[nodiscard]] Index dim() const { return point_.size(); }
  [[nodiscard]] Length cardinality() const { return Length::infinity(); }
  [[nodiscard]] Vector mean() const { return point_; }
  [[nodiscard]] Matrix second_moment() const { return point_ * point_.transpose(); }
  [[nodiscard]] double log_mgf(const VectorView& a) const;
  [[nodiscard]] double centred_log_mgf(const VectorView& a) const;
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const;
  [[nodiscard]] Vector mean_shift(const VectorView& a) const;
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const;
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const;
  [[nodiscard]] HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                                 const MatrixView& Y) const;
  // No number of the stream is used.
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const { return 0; }
  [[nodiscard]] bool strictly_sub_gaussian() const { return true; }
  [[nodiscard]] std::string name() const { return "dirac"; }

 private:
  Vector point_;
};

}  // namespace esscher
