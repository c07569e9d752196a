// The law of the tokens of one prompt, in the two forms that risks ask for: a measure, which has an
// infinite prompt and can be sampled, and a mixture of Gaussians of one covariance,
//
//   z' ~ sum_k p_k N(m_k, S),
//
// which the average over finite prompts reads (risk/prompt_error.h). Mixtures are such laws, a
// Gaussian is one with K = 1, and so is a single-index token (x, g(w'x) + noise) given w: with
// H = w'x ~ N(0, rho^2), Sigma the covariance of x and sig2 that of the noise,
//
//   m(H) = (Sigma w H/rho^2, g(H)),   S = blockdiag(Sigma - Sigma w w'Sigma/rho^2, sig2),
//
// where H is replaced by Gauss-Legendre nodes, split at the kinks of g. How many nodes a finite
// prompt needs depends on how fast its score grows with H, so the mixture is made for a tilt a.
#pragma once

#include <memory>
#include <variant>

#include "esscher/measure/any_measure.h"
#include "esscher/measure/single_index.h"

namespace esscher {

struct SharedMixture {
  Vector weights;  // p [K] > 0, sum 1
  Matrix means;    // m [K,D]
  Matrix cov;      // S [D,D] PSD

  [[nodiscard]] Index count() const { return weights.size(); }
  [[nodiscard]] Index dim() const { return means.cols(); }
};

class TokenLaw {
 public:
  // Throws DimensionError naming what does not fit.
  explicit TokenLaw(SharedMixture mixture);
  explicit TokenLaw(const SingleIndex& law);

  // Made when it is first asked for, because training in lanes draws laws and never asks. Throws
  // ArgumentError if the weights or the covariance of a mixture are none.
  [[nodiscard]] const AnyMeasure& measure() const;
  [[nodiscard]] Index dim() const;
  // The mixture that the law is, or nothing for a single index.
  [[nodiscard]] std::shared_ptr<const SharedMixture> shared() const;
  // Nodes that serve finite prompts at the tilt a [D].
  [[nodiscard]] std::shared_ptr<const SharedMixture> mixture(const VectorView& a) const;

 private:
  struct Measure;  // once it is made

  std::variant<std::shared_ptr<const SharedMixture>, std::shared_ptr<const SingleIndex>> source_;
  std::shared_ptr<Measure> measure_;
};

}  // namespace esscher
