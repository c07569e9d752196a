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
  Interval ci;           // 95 %
  double between = 0;    // variance of the query means over nu, >= 0 (unbiased, then clipped at 0)
  double within = 0;     // variance of one prompt's number at a given query, averaged over queries
  Index queries = 0;     // Q
  Index replicates = 0;  // R, prompts per query
};

// values [Q,R]. Random queries need Q >= 2, fixed ones R >= 2 (ArgumentError otherwise).
TwoLevel two_level(const MatrixView& values, Queries queries);

// The same from each query's mean over R prompts [Q] and the standard error of that mean [Q]; zero
// errors (an exact engine per query) are welcome.
TwoLevel two_level(const VectorView& means, const VectorView& std_errors, Index replicates,
                   Queries queries);

// Percentile bootstrap interval of the grand mean of values [Q,R]. Random queries are resampled
// whole, with their prompts (resampling prompts again inside would count their noise twice); fixed
// queries keep their place and have their prompts resampled.
Interval bootstrap_interval(const MatrixView& values, Queries queries, int draws,
                            const Stream& stream, double level = kLevel);

// Covariance [k,k] of the k column means of samples [n,k], rows independent: how the points of a
// curve move together when they share random numbers.
Matrix covariance_of_means(const MatrixView& samples);

}  // namespace esscher
