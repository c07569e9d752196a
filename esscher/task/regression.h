// In-context linear regression (docs/maths/icl.md):
//
//   w ~ N(0, s2 I_d),   prompt tokens z_l = (x_l, y_l) in R^{d+1},   y_l = w'x_l + eps_l,
//   x_l = Sigma^{1/2} xi_l,   eps_l ~ N(0, sig2),   query (x, 0) with x = Sigma_q^{1/2} xi,
//   target y = w'x   (+ noise of variance sig2 if query_noise)
//
// xi has identity covariance: Gaussian, +-1 coordinates, uniform coordinates on [-sqrt 3, sqrt 3],
// or the sphere of radius sqrt d. Every risk of this project is ONE HALF of a mean squared error.
#pragma once

#include "esscher/base/enum_names.h"
#include "esscher/base/linalg.h"

namespace esscher {

enum class Features { gaussian, rademacher, uniform, sphere };

constexpr auto enum_names(Features) {
  return EnumNames<Features, 4>{"features",
                                {{{Features::gaussian, "gaussian"},
                                  {Features::rademacher, "rademacher"},
                                  {Features::uniform, "uniform"},
                                  {Features::sphere, "sphere"}}}};
}

struct LinearRegressionTask {
  Index dim = 1;              // d
  double task_variance = 1;   // s2
  double noise_variance = 0;  // sig2, on the labels of the prompt
  bool query_noise = false;   // the same noise on the target of the query
  Matrix prompt_cov;          // Sigma [d,d]
  Matrix query_cov;           // Sigma_q [d,d]
  Features features = Features::gaussian;

  // Sigma = Sigma_q = I.
  static LinearRegressionTask isotropic(Index dim);
  // Sigma = Sigma_q = covariance.
  static LinearRegressionTask with_covariance(const MatrixView& covariance);

  // Throws ArgumentError or DimensionError naming the field that is wrong.
  void check() const;

  [[nodiscard]] Index token_dim() const { return dim + 1; }
  // The part of every risk that no prediction removes: sig2/2 if the target is noisy, else 0.
  [[nodiscard]] double irreducible_risk() const;
};

// G_w = [[Sigma, Sigma w], [w'Sigma, w'Sigma w + sig2]]  [d+1,d+1]: the covariance of a token given
// w, for all four kinds of features.
Matrix token_covariance(const LinearRegressionTask& task, const VectorView& w);

// [Sigma]_ij = rho^|i-j|  [d,d], the covariance of the authors' experiment.
Matrix power_covariance(Index dim, double rho);

}  // namespace esscher
