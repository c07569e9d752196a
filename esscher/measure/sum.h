// Sum of independent parts, e.g. a measure plus Gaussian noise; all parts on R^d.
//
//   Lambda(a) = sum Lambda_k(a),  m_a = sum m_k,  C_a = sum C_k          (m_k, C_k at a)
//
// sigma is sqrt(lambda_max(Cov)) if every part is strictly sub-Gaussian, infinite if that of a part
// is, and found numerically otherwise.
#pragma once

#include <vector>

#include "esscher/measure/any_measure.h"

namespace esscher {

class Sum {
 public:
  // At least one part, equal dimensions.
  explicit Sum(std::vector<AnyMeasure> parts);

  [[nodiscard]] const std::vector<AnyMeasure>& parts() const { return parts_; }

  [[nodiscard]] Index dim() const { return parts_.front().dim(); }
  [[nodiscard]] Length cardinality() const { return Length::infinity(); }
  [[nodiscard]] Vector mean() const;
  [[nodiscard]] Matrix second_moment() const;
  [[nodiscard]] double log_mgf(const VectorView& a) const;
  [[nodiscard]] double centred_log_mgf(const VectorView& a) const;
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const;
  [[nodiscard]] Vector mean_shift(const VectorView& a) const;
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const;
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const;
  [[nodiscard]] HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                                 const MatrixView& Y) const;
  // Part k draws from stream.split(k).
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const;
  [[nodiscard]] bool strictly_sub_gaussian() const;
  [[nodiscard]] std::string name() const { return "sum"; }

 private:
  std::vector<AnyMeasure> parts_;
};

}  // namespace esscher
