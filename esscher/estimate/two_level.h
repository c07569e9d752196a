// Averages over two levels of randomness: queries z_q ~ nu and, for each query, independent
// prompts.
//
//   x_qr = mean_q + e_qr,   grand mean = average over q and r
//   Var(grand mean) = between/Q + within/(Q R)      queries drawn from nu
//                   = within/(Q R)                  queries given (fixed)
//
// Counting all Q*R numbers as independent would understate the first by up to a factor R.
#pragma once

#include "esscher/base/linalg.h"
#include "esscher/estimate/interval.h"
#include "esscher/random/stream.h"

namespace esscher {

enum class Queries { random, fixed };

struct TwoLevel {
  double mean = 0;
  double std_error = 0;
  Interval ci;           // at the level asked for, 95 % unless said
  double between = 0;    // variance of the query means over nu, >= 0 (unbiased, then clipped at 0)
  double within = 0;     // variance of one prompt's number at a given query, averaged over queries
  Index queries = 0;     // Q
  Index replicates = 0;  // R, prompts per query
};

// The law of a squared error at a given query is skewed, and few prompts do not show how much. What
// is known of it beforehand is its relative variance, Var x / (E x)^2: 2 for the square of one
// centred normal number, 2 tr S^2 / (tr S)^2 for |e|^2 with e ~ N(0,S).
struct SquareLaw {
  Vector means = {};               // [Q], E x up to a common factor
  Vector relative_variances = {};  // [Q]
};

// values [Q,R]. Random queries need Q >= 2, fixed ones R >= 2 (ArgumentError otherwise).
TwoLevel two_level(const MatrixView& values, Queries queries);

// The same from each query's mean over R prompts [Q] and the standard error of that mean [Q]; zero
// errors (an exact engine per query) are welcome.
TwoLevel two_level(const VectorView& means, const VectorView& std_errors, Index replicates,
                   Queries queries, double level = kLevel);

// The average of squared errors at fixed queries, with an interval as skewed as they are:
// chi_square_interval with dof = 2 mean^2 / variance of the average. The relative variance v of the
// average is predicted by the law and measured by the prompts, with weights 30 and Q R - 1; the
// measured one is taken where it is larger. tests/concentration and scripts/calibrate measure the
// coverage.
TwoLevel mean_of_squares(const VectorView& means, const VectorView& std_errors, Index replicates,
                         const SquareLaw& law, double level = kLevel);

// Percentile bootstrap interval of the grand mean of values [Q,R]. Random queries are resampled
// whole, with their prompts (resampling prompts again inside would count their noise twice); fixed
// queries keep their place and have their prompts resampled.
Interval bootstrap_interval(const MatrixView& values, Queries queries, int draws,
                            const Stream& stream, double level = kLevel);

// Covariance [k,k] of the k column means of samples [n,k], rows independent: how the points of a
// curve move together when they share random numbers.
Matrix covariance_of_means(const MatrixView& samples);

}  // namespace esscher
