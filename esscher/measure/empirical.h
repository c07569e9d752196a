// A finite prompt: atoms z_l [n,d] with weights p_l, which are 1/n unless given. Softmax attention
// reads it through
//
//   Lambda(a) = log sum p_l e^{<a,z_l>},   r = softmax(<a,z_l> + log p_l)
//   m_a = sum r_l z_l,                     C_a = sum r_l (z_l - m_a)(z_l - m_a)'
//
// This is the plain reference in two passes; the fast kernels are in tilt/. Deviations are taken
// from the token with the largest score, so a covariance that one token dominates keeps its
// relative accuracy however small it is.
#pragma once

#include <memory>

#include "esscher/measure/discrete_tilt.h"
#include "esscher/measure/measure.h"

namespace esscher {

class Empirical {
 public:
  // tokens [n,d], n, d >= 1, finite.
  explicit Empirical(Matrix tokens);
  // weights [n] >= 0, not all zero; divided by their sum.
  Empirical(Matrix tokens, const VectorView& weights);

  [[nodiscard]] const Matrix& tokens() const { return *tokens_; }   // [n,d]
  [[nodiscard]] const Vector& weights() const { return weights_; }  // [n], sum 1
  [[nodiscard]] Index size() const { return tokens_->rows(); }

  [[nodiscard]] Index dim() const { return tokens_->cols(); }
  [[nodiscard]] Length cardinality() const { return Length(size()); }
  [[nodiscard]] Vector mean() const { return mean_; }
  [[nodiscard]] Matrix second_moment() const;
  [[nodiscard]] Vector second_moment_times(const VectorView& v) const;
  [[nodiscard]] double log_mgf(const VectorView& a) const;
  [[nodiscard]] double centred_log_mgf(const VectorView& a) const;
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const;
  [[nodiscard]] Vector mean_shift(const VectorView& a) const;
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const;
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const;
  [[nodiscard]] HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                                 const MatrixView& Y) const;
  // Draws atoms with replacement; the tokens of the sample have equal weights.
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  // Found numerically (see sub_gaussian.h).
  [[nodiscard]] double sub_gaussian() const;
  [[nodiscard]] std::string name() const { return "empirical"; }

  // Softmax weights r [n] at tilt a.
  [[nodiscard]] Vector tilted_weights(const VectorView& a) const;
  // 1 / sum r_l^2, between 1 and n.
  [[nodiscard]] double effective_sample_size(const VectorView& a) const;

 private:
  [[nodiscard]] DiscreteTilt tilt(const VectorView& a) const;

  std::shared_ptr<const Matrix> tokens_;  // shared: copies of a prompt are cheap
  Vector weights_;
  Vector mean_;
};

}  // namespace esscher
