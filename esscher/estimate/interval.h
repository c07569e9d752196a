// Confidence intervals. A level of 0.95 means: in repeated studies 95 % of the intervals contain
// the truth; tests/estimate measures that coverage.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

struct Interval {
  double lo = 0;
  double hi = 0;
  [[nodiscard]] bool contains(double x) const { return lo <= x && x <= hi; }
};

inline constexpr double kLevel = 0.95;

// Two-sided quantiles: P(|N(0,1)| <= q) = level, and Student's t with dof > 0 degrees of freedom.
double normal_quantile(double level = kLevel);
double student_quantile(double dof, double level = kLevel);

// value +- q * std_error.
Interval normal_interval(double value, double std_error, double level = kLevel);
Interval student_interval(double value, double std_error, double dof, double level = kLevel);

// Interval for the mean of independent, possibly skewed samples [n], n >= 2: Student's t after
// Hall's (1992) cubic, monotone transformation that removes the skewness term of the Edgeworth
// expansion. Squared errors are skewed to the right, where the plain interval misses above the mean
// too often.
Interval mean_interval(const VectorView& samples, double level = kLevel);

// Interval for the mean of squares, from their average and its degrees of freedom:
//
//   value dof / q(1 - alpha/2) .. value dof / q(alpha/2),   q: quantiles of chi-square, 1 - alpha = level
//
// It is exact for an average of squares of centred normal numbers, dof = 2 mean^2 / variance of the
// average (Satterthwaite 1946), and as skewed as such an average is.
Interval chi_square_interval(double value, double dof, double level = kLevel);

}  // namespace esscher
