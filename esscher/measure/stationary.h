// Tokens that depend on each other: a stationary Gaussian sequence whose every token is N(m, G).
//
//   G_k = Cov(z_0, z_k) = E (z_0 - m)(z_k - m)'   [d,d],   G_{-k} = G_k'
//
// It is given by autocorrelations r_1 .. r_q, with G_k = r_k G and 0 beyond q (a moving average), or
// by an autoregression of order p,
//
//   z_t - m = A_1 (z_{t-1} - m) + .. + A_p (z_{t-p} - m) + noise,
//
// whose noise covariance follows from G: G - A G A' for p = 1, and in general the solution of
// G = sum_j Psi_j Q Psi_j' with the responses Psi_0 = I, Psi_j = sum_i A_i Psi_{j-i}. Both are
// refused if no process has them: a spectral density below zero, responses that do not fade, a
// noise covariance that is not PSD.
//
// As a law of one token this is the Gaussian: Lambda and the limit do not see the order. A sample
// is a stretch of the sequence instead of independent tokens; token l is a function of the stream
// and of l alone, and a shorter sample is a prefix of a longer one. Engines that need independent
// tokens refuse it (is_dependent).
#pragma once

#include <optional>
#include <vector>

#include "esscher/measure/any_measure.h"
#include "esscher/measure/gaussian.h"

namespace esscher {

class Stationary {
 public:
  // `of` must be a Gaussian law, however it is written (gaussian_view.h).
  static Stationary autocorrelated(const AnyMeasure& of, const VectorView& autocorrelation);
  // A_1 .. A_p [d,d]. With p >= 2, d is at most 24 unless every A_i is a multiple of the identity.
  static Stationary autoregressive(const AnyMeasure& of, std::vector<Matrix> ar);
  // Estimated from tokens [n,d] in their order: mean, covariance and autocorrelations
  // (estimate/autocorrelation.h), tapered by 1 - k/(window + 1), which keeps them a process.
  static Stationary fit(const MatrixView& tokens);

  // G_0 .. G_h; what follows is below 1e-17 of G_0.
  [[nodiscard]] const std::vector<Matrix>& autocovariances() const { return autocovariances_; }
  [[nodiscard]] const Gaussian& token() const { return token_; }

  [[nodiscard]] Index dim() const { return token_.dim(); }
  [[nodiscard]] Length cardinality() const { return Length::infinity(); }
  [[nodiscard]] Vector mean() const { return token_.mean(); }
  [[nodiscard]] Matrix second_moment() const { return token_.second_moment(); }
  [[nodiscard]] double log_mgf(const VectorView& a) const { return token_.log_mgf(a); }
  [[nodiscard]] double centred_log_mgf(const VectorView& a) const {
    return token_.centred_log_mgf(a);
  }
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const { return token_.tilted_mean(a); }
  [[nodiscard]] Vector mean_shift(const VectorView& a) const { return token_.mean_shift(a); }
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const { return token_.tilted_cov(a); }
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const {
    return token_.tilted_cov_times(a, v);
  }
  [[nodiscard]] HigherCumulants higher_cumulants(const VectorView& a, const MatrixView& W,
                                                 const MatrixView& Y) const {
    return token_.higher_cumulants(a, W, Y);
  }
  // A stretch of n tokens in their order.
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const { return token_.sub_gaussian(); }
  [[nodiscard]] bool strictly_sub_gaussian() const { return true; }
  [[nodiscard]] std::string name() const { return "stationary"; }

 private:
  explicit Stationary(Gaussian token) : token_(std::move(token)) {}
  [[nodiscard]] Matrix moving_sample(const Stream& stream, Index n) const;
  [[nodiscard]] Matrix regressive_sample(const Stream& stream, Index n) const;
  void set_autoregression(std::vector<Matrix> ar);

  Gaussian token_;
  std::vector<Matrix> autocovariances_;
  Vector r_;                // autocorrelations; empty for an autoregression
  std::vector<Matrix> ar_;  // A_1 .. A_p
  Matrix start_;            // factor of the covariance of the first p tokens [p d, rank]
  Matrix noise_;            // factor of the noise covariance [d, rank]
};

// Whether the tokens of a sample depend on each other, anywhere inside a composed measure.
bool is_dependent(const AnyMeasure& mu);

// G_0 .. G_h of a stationary sequence or of an affine image of one; empty otherwise.
std::optional<std::vector<Matrix>> autocovariances(const AnyMeasure& mu);

}  // namespace esscher
