// One-hot tokens e_i with probabilities p [d]:
//
//   Lambda(a) = log sum p_i e^{a_i},  m_a = r = softmax(a + log p),  C_a = diag(r) - r r'
//
// For two atoms sigma has a closed form (Kearns and Saul):
//
//   sigma^2 = |e_1 - e_2|^2 (p_1 - p_2) / (2 log(p_1/p_2)) = (p_1 - p_2) / log(p_1/p_2)
//
// which is 1/2 for p_1 = p_2. Otherwise sigma is found numerically.
#pragma once

#include "esscher/measure/discrete_tilt.h"
#include "esscher/measure/measure.h"

namespace esscher {

class Categorical {
 public:
  // probs [d] >= 0, not all zero; divided by their sum.
  explicit Categorical(const VectorView& probs);

  [[nodiscard]] const Vector& probs() const { return p_; }

  [[nodiscard]] Index dim() const { return p_.size(); }
  [[nodiscard]] Length cardinality() const { return Length::infinity(); }
  [[nodiscard]] Vector mean() const { return p_; }
  [[nodiscard]] Matrix second_moment() const { return p_.asDiagonal(); }
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
  [[nodiscard]] std::string name() const { return "categorical"; }

 private:
  [[nodiscard]] DiscreteTilt tilt(const VectorView& a) const;

  Vector p_;
};

}  // namespace esscher
