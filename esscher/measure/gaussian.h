// Gaussian N(m, G), where G is positive semidefinite and may be singular:
//
//   Lambda(a) = a'm + a'Ga/2,  m_a = m + Ga,  C_a = G,  sigma = sqrt(lambda_max(G))
#pragma once

#include "esscher/measure/measure.h"

namespace esscher {

class Gaussian {
 public:
  // mean [d], cov [d,d] symmetric PSD (see psd_factor for the errors).
  Gaussian(const VectorView& mean, const MatrixView& cov);
  // Centred.
  explicit Gaussian(const MatrixView& cov);

  [[nodiscard]] const Matrix& cov() const { return cov_; }
  // F [d,rank] with G = F F'.
  [[nodiscard]] const Matrix& factor() const { return factor_; }

  [[nodiscard]] Index dim() const { return mean_.size(); }
  [[nodiscard]] Length cardinality() const { return Length::infinity(); }
  [[nodiscard]] Vector mean() const { return mean_; }
  [[nodiscard]] Matrix second_moment() const { return cov_ + mean_ * mean_.transpose(); }
  [[nodiscard]] Vector second_moment_times(const VectorView& v) const;
  [[nodiscard]] double log_mgf(const VectorView& a) const;
  [[nodiscard]] double centred_log_mgf(const VectorView& a) const;
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const;
  [[nodiscard]] Vector mean_shift(const VectorView& a) const;
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const;
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const;
  [[nodiscard]] HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                                 const MatrixView& Y) const;
  // Token l is m + F g with g = normals l*rank ... l*rank + rank - 1 of the stream.
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const;
  [[nodiscard]] bool strictly_sub_gaussian() const { return true; }
  [[nodiscard]] std::string name() const { return "gaussian"; }

 private:
  Vector mean_;
  Matrix cov_;
  Matrix factor_;
};

}  // namespace esscher
