// Linear regression with laws of the task and of the features that regression.h does not have:
//
//   token (x, w'x + noise),   x ~ N(0, C) with one C per prompt,   query (x, 0),   target w'x   (+ noise)
//
//   w   ~ N(0, T), where T may be singular: tasks of low rank lie in its range; or sparse: a random
//         set S of k coordinates is N(0, T_SS), and the others are 0
//   C   = Sigma (fixed),
//         s Sigma, log s ~ N(-sigma^2/2, sigma^2) (scale), or
//         Sigma^{1/2} G'G Sigma^{1/2} / m, G [m,d] of standard normals (wishart); E C = Sigma in all
//
// Features say nothing about w beyond the labels, so the best prediction from a prompt (X, y) is
// the same for every law of C: for a known set S
//
//   E[w_S | X, y, S] = T_SS X_S'(X_S T_SS X_S' + sig2 I)^{-1} y,
//
// and sets are weighed by the density of y given them.
#pragma once

#include "esscher/base/enum_names.h"
#include "esscher/task/context.h"

namespace esscher {

enum class CovarianceLaw { fixed, scale, wishart };

constexpr auto enum_names(CovarianceLaw) {
  return EnumNames<CovarianceLaw, 3>{"law of the covariance",
                                     {{{CovarianceLaw::fixed, "fixed"},
                                       {CovarianceLaw::scale, "scale"},
                                       {CovarianceLaw::wishart, "wishart"}}}};
}

struct LinearFamilyTask {
  Matrix task_cov;    // T [d,d]
  Index nonzero = 0;  // k; 0: all coordinates
  Matrix cov;         // Sigma [d,d]
  CovarianceLaw cov_law = CovarianceLaw::fixed;
  double scale_deviation = 0.5;  // sigma of the law scale
  Index degrees = 0;             // m of the law wishart; 0: 2 d
  double noise_variance = 0;     // sig2
  bool query_noise = false;

  // Throws ArgumentError or DimensionError naming the field that is wrong.
  void check() const;
};

inline constexpr Index kMostSupports = 1000;

// E[w | X, y] for w = F g with F [d,r] and g standard normal, labels X w + noise of this variance.
Vector ridge_mean(const Matrix& factor, const Matrix& X, const Vector& y, double noise);

ContextTask linear_family_task(const LinearFamilyTask& task);

}  // namespace esscher
