// Gradients along training on features that are not Gaussian, without sampling. Noise-free linear
// regression, tasks w ~ N(0, I), U = [[A, 0], [0, 0]], readout b. Tasks average out:
//
//   R_L(A,b) = E_x E|b xbar - x|^2 / 2,     xbar = sum omega x_l at the tilt A x
//   R_L - R_inf = E_x E[ |b xbar - b m|^2 + 2 (b xbar - b m)'(b m - x) ] / 2,   m of the infinite prompt
//
// Averages over prompts are those of score laws (prompt/exact_prompt.h). Queries x are all signs,
// nodes of a product of Gauss-Legendre rules, or of a product rule on the sphere. The gradient of the
// difference is taken by central differences of it, so that nothing of the size of R_inf cancels.
#pragma once

#include <cstdint>
#include <vector>

#include "esscher/measure/any_measure.h"
#include "esscher/task/regression.h"

namespace esscher::paper {

struct FeatureGap {
  std::int64_t L = 0;
  double gap = 0;    // |grad R_L - grad R_inf|
  double error = 0;  // what a coarser rule of queries would change; 0 where queries are atoms
};

class FeatureGaps {
 public:
  // d = 2 or 3, a covariance that is the same read backwards, features that are not Gaussian. `nodes`
  // per axis of the queries, 4, 5 or 6.
  explicit FeatureGaps(const LinearRegressionTask& task, int nodes = 5);

  // (A row by row, b) [d d + 1] at this time on the gradient flow of R_inf from A = alpha I/sqrt d,
  // b = alpha.
  [[nodiscard]] Vector path(double alpha, double t) const;
  [[nodiscard]] Vector limit_gradient(const Vector& theta) const;
  [[nodiscard]] std::vector<FeatureGap> gaps(const Vector& theta,
                                             const std::vector<std::int64_t>& lengths) const;

 private:
  struct Queries {
    Matrix x;
    Vector w;
  };
  [[nodiscard]] Queries queries(Features features, int nodes) const;
  // R_L - R_inf at each length.
  [[nodiscard]] Vector differences(const Queries& at, const Matrix& A, double b,
                                   const std::vector<std::int64_t>& lengths) const;
  [[nodiscard]] Vector gap_norms(const Queries& at, const Vector& theta,
                                 const std::vector<std::int64_t>& lengths) const;

  Index d_;
  Matrix root_;  // S^{1/2}
  AnyMeasure law_;
  bool atoms_;
  Queries fine_, coarse_;
};

}  // namespace esscher::paper
