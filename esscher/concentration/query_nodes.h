// Gaussian queries N(m,S) by scrambled Sobol points, for engines whose error at a query has no
// noise:
//
//   E_z f(z) = average of w f(z) over the points x of a net of standard normals,
//   z = m + S^{1/2} E R^{1/2} x,   R = diag(r),   w = prod_i r_i^{1/2} e^{-(r_i - 1) x_i^2 / 2}
//
// The columns of E are the eigenvectors of S^{1/2} A S^{1/2}, A = U'GU, so that the
// best coordinates of the net move tau^2 = z'A z most. Errors grow like e^{tau^2} times powers of
// tau, so r_i = 1.5/(1 - 2 lambda_i), at most 4, draws more of the queries that carry their
// average; only in the first directions, as long as the weights stay close to 1 on average. Points
// come in kGroups independent scramblings of 2^k points each; the spread of their averages is the
// error.
#pragma once

#include "esscher/attention/attention.h"
#include "esscher/base/linalg.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/random/stream.h"

namespace esscher {

inline constexpr Index kGroups = 8;

struct QueryNodes {
  Matrix z;        // [n,d]
  Vector weights;  // [n], 1 on average over scramblings
};

// U'GU of the component with the sharpest scores: distances between components only bound the
// error.
Matrix score_form(const GaussianMixtureLaw& mu, const Attention& attention);

// At least `count` queries, n = kGroups 2^k, group after group. d <= kMaxSobolDims.
QueryNodes sobol_queries(const GaussianLaw& nu, const MatrixView& A, Index count,
                         const Stream& stream);

// w v - beta (w - 1), whose average is that of w v: E w = 1 is known, and beta = Cov(w v, w)/Var w
// takes out what the weights alone move. v itself for equal weights.
Vector controlled(const VectorView& values, const VectorView& weights);

// Averages of values [n,k] over each of `groups` equal runs of rows  [groups,k].
Matrix group_means(const MatrixView& values, Index groups);

}  // namespace esscher
