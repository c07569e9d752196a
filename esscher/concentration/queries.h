// The queries of a study: given, drawn from their law, or a net with weights, and how numbers at
// the queries become an average with its error.
//
// Nets are Gaussian queries N(m,S) by scrambled Sobol points, for engines whose error at a query
// has no noise:
//
//   E_z f(z) = average of w f(z) over the points x of a net of standard normals,
//   z = m + S^{1/2} E R^{1/2} x,   R = diag(r),   w = prod_i r_i^{1/2} e^{-(r_i - 1) x_i^2 / 2}
//
// The columns of E are the eigenvectors of S^{1/2} A S^{1/2}, A = U'GU, with eigenvalues lambda_i,
// so that the best coordinates of the net are those that change tau^2 = z'A z most. Errors grow
// like e^{tau^2} times powers of tau, so normals are widened towards large tau
// (random/widened_normals.h). Points come in kGroups independent scramblings of 2^k points each;
// the spread of their averages gives the standard error.
#pragma once

#include <cstdint>

#include "esscher/attention/attention.h"
#include "esscher/base/linalg.h"
#include "esscher/estimate/two_level.h"
#include "esscher/measure/any_measure.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/random/stream.h"

namespace esscher {

inline constexpr Index kGroups = 8;

// Streams of a seed: queries are drawn from the first, the prompts of query q from the q-th split
// of the second.
inline constexpr std::uint64_t kQueryStream = 0, kPromptStream = 1;

struct QuerySet {
  Matrix z = {};                   // [n,d]
  Vector weights = {};             // [n], 1 on average over scramblings; 1 unless by nets
  Index groups = 0;                // > 0: as many scramblings of a net; 0: drawn or given
  Queries level = Queries::fixed;  // fixed: given, so that only prompts are random

  [[nodiscard]] Index size() const { return z.rows(); }
  // Numbers [n], or [n,k] column by column, whose plain average is the average over queries of
  // `values`: the values themselves, or controlled() ones of a net.
  [[nodiscard]] Vector shares(const VectorView& values) const;
  [[nodiscard]] Matrix column_shares(const MatrixView& values) const;
  // The average over queries of values [n].
  [[nodiscard]] double average(const VectorView& values) const;
  // Independent numbers with the same average as shares [n,k]: averages over each scrambling, or
  // the shares as they are.
  [[nodiscard]] Matrix independent(const MatrixView& shares) const;
  // The average of a column of independent() with its interval, for queries that are drawn or a
  // net. Given queries have square_law.h.
  [[nodiscard]] TwoLevel interval(const VectorView& independent, double confidence = kLevel) const;
};

QuerySet given_queries(const Matrix& points);
QuerySet drawn_queries(const AnyMeasure& nu, Index count, std::uint64_t seed);

// U'GU of the component with the sharpest scores. Distances between components do not count,
// because they only bound the error.
Matrix score_form(const GaussianMixtureLaw& mu, const Attention& attention);
// The same for any law, where Gaussian mixtures have the above and others U' Cov U.
Matrix score_form(const AnyMeasure& mu, const Attention& attention);

// At least `count` queries, n = kGroups 2^k, group after group. d <= kMaxSobolDims.
QuerySet sobol_queries(const GaussianLaw& nu, const MatrixView& A, Index count,
                       const Stream& stream);

// w v - beta (w - 1), with beta = Cov(w v, w)/Var w. Since E w = 1, its mean is that of w v, but
// without the part of the spread that comes from the weights alone. For equal weights it is v.
Vector controlled(const VectorView& values, const VectorView& weights);

// The averages [groups,k] of values [n,k] over `groups` equal, consecutive blocks of rows.
Matrix group_means(const MatrixView& values, Index groups);

}  // namespace esscher
