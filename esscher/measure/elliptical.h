// Elliptical law as a scale mixture of Gaussians: z' = m + sqrt(W) G^{1/2} g, g ~ N(0,I), where the
// factor W >= 0 of the covariance is w_i with probability p_i. With q = a'Ga/2,
//
//   Lambda(a) = a'm + K(q),  K(q) = log sum p_i e^{w_i q}
//   m_a       = m + K'(q) Ga                         K'(q) = mean of W tilted by q
//   C_a       = K'(q) G + K''(q) Ga (Ga)'            K''(q) = its variance
//   sigma     = sqrt(largest w_i with p_i > 0, times lambda_max(G))
//
// K(q)/q increases to the largest w_i, which gives sigma. The mean is linear in a only if W is a
// constant. Everything comes from the tilted weights r_i ~ p_i e^{w_i q} (discrete_tilt.h).
#pragma once

#include "esscher/measure/measure.h"

namespace esscher {

// A law of W: values w [n] and probabilities p [n].
struct ScaleLaw {
  Vector scales;
  Vector weights;
};

// The gamma law of this shape and mean 1, restricted to [0, bound], as the Gauss rule of `nodes`
// points. The rule is the law that everything is computed for. It has the moments of the continuous
// law up to order 2 nodes - 1 - (what e^{-shape w} needs), and its K(q) to 1e-12 while
// (q + shape) bound <= 2 nodes. shape > 0, bound > 0, shape * bound <= 200.
ScaleLaw gamma_scales(double shape, double bound, Index nodes = 64);

class Elliptical {
 public:
  // mean [d], cov [d,d] symmetric PSD; scales [n] >= 0, weights [n] >= 0, divided by their sum.
  Elliptical(const VectorView& mean, const MatrixView& cov, const ScaleLaw& law);
  // Centred.
  Elliptical(const MatrixView& cov, const ScaleLaw& law);

  [[nodiscard]] const Matrix& cov() const { return cov_; }  // G, the covariance where W = 1
  [[nodiscard]] const Vector& scales() const { return scales_; }
  [[nodiscard]] const Vector& weights() const { return weights_; }

  [[nodiscard]] Index dim() const { return mean_.size(); }
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
  // Uniform l of split(0) chooses w, and normals l*rank .. l*rank + rank - 1 of split(1) are g.
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const;
  [[nodiscard]] bool strictly_sub_gaussian() const;
  [[nodiscard]] std::string name() const { return "elliptical"; }

 private:
  struct Tilt;
  [[nodiscard]] Tilt tilt(const VectorView& a) const;

  Vector mean_;
  Matrix cov_;
  Matrix factor_;  // F [d,rank] with G = F F'
  Vector scales_;  // [n]
  Vector weights_;
  double mean_scale_ = 0;  // E W
};

}  // namespace esscher
