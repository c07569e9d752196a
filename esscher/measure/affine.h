// Affine image c + B z' of a measure mu_0 on R^k, with c [d], B [d,k]:
//
//   Lambda(a) = a'c + Lambda_0(B'a),  m_a = c + B m_0,  C_a = B C_0 B'   (m_0, C_0 at B'a)
//
// sigma is sqrt(lambda_max(B Cov B')) if mu_0 is strictly sub-Gaussian, and is found numerically
// otherwise.
#pragma once

#include "esscher/measure/any_measure.h"

namespace esscher {

class Affine {
 public:
  Affine(const VectorView& c, const MatrixView& B, AnyMeasure inner);

  [[nodiscard]] const Vector& c() const { return c_; }
  [[nodiscard]] const Matrix& B() const { return B_; }
  [[nodiscard]] const AnyMeasure& inner() const { return inner_; }

  [[nodiscard]] Index dim() const { return c_.size(); }
  [[nodiscard]] Length cardinality() const { return inner_.cardinality(); }
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
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const;
  [[nodiscard]] bool strictly_sub_gaussian() const { return inner_.strictly_sub_gaussian(); }
  [[nodiscard]] std::string name() const { return "affine"; }

 private:
  // B'a, after a was checked.
  [[nodiscard]] Vector pulled_back(const VectorView& a) const;

  Vector c_;
  Matrix B_;
  AnyMeasure inner_;
};

}  // namespace esscher
