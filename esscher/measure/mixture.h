// Finite mixture with weights p_k of components mu_k on R^d:
//
//   Lambda(a) = log sum p_k e^{Lambda_k(a)},  r = softmax(log p_k + Lambda_k(a))
//   m_a = sum r_k m_k,  C_a = sum r_k (C_k + (m_k - m_a)(m_k - m_a)')      (m_k, C_k at a)
//
// Everything is computed from the centred scores x_k = <a, mean_k - mean> + D_k, where
// D_k = Lambda_k(a) - <a,mean_k> (discrete_tilt.h), so tiny tilts keep their relative accuracy.
#pragma once

#include <vector>

#include "esscher/measure/any_measure.h"

namespace esscher {

class Mixture {
 public:
  // weights [k] >= 0, not all zero, divided by their sum; components of equal dimension.
  Mixture(const VectorView& weights, std::vector<AnyMeasure> components);

  [[nodiscard]] const Vector& weights() const { return weights_; }
  [[nodiscard]] const std::vector<AnyMeasure>& components() const { return components_; }

  [[nodiscard]] Index dim() const { return components_.front().dim(); }
  [[nodiscard]] Length cardinality() const { return Length::infinity(); }
  [[nodiscard]] Vector mean() const { return mean_; }
  [[nodiscard]] Matrix second_moment() const;
  [[nodiscard]] double log_mgf(const VectorView& a) const;
  [[nodiscard]] double centred_log_mgf(const VectorView& a) const;
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const;
  [[nodiscard]] Vector mean_shift(const VectorView& a) const;
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const;
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const;
  [[nodiscard]] HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                                 const MatrixView& Y) const;
  // Uniform l of split(0) chooses the component k of token l, which is token l of the sample of
  // component k from split(1 + k).
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const;
  [[nodiscard]] std::string name() const { return "mixture"; }

 private:
  struct Tilt;
  [[nodiscard]] Tilt tilt(const VectorView& a) const;
  [[nodiscard]] Matrix tilted_offsets(const Tilt& tilted, const VectorView& a) const;

  Vector weights_;                      // [k]
  std::vector<AnyMeasure> components_;  // [k]
  Vector mean_;                         // [d]
  Matrix offsets_;                      // [k,d] mean_k - mean
};

}  // namespace esscher
