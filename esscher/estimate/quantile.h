// Quantiles of numbers, by one convention everywhere: the quantile at level p of n numbers is the
// order statistic of rank round(p (n - 1)), ranks from 0. At p = 1/2 of an even count the two in
// the middle are averaged, which is the usual median.
#pragma once

#include <vector>

#include "esscher/base/estimate.h"

namespace esscher {

// 0 of nothing; p is clamped to [0, 1].
double quantile(std::vector<double> values, double p);

// The order statistic of rank floor(share n), clamped to the numbers there are. This is no estimate of
// a quantile but an end of its interval: of n independent numbers B ~ Binomial(n, p) lie below the
// p-quantile of their law, so [order_statistic(p - h), order_statistic(p + h)] misses it exactly if
// B leaves (n (p - h), n (p + h)], whatever the law is.
double order_statistic(std::vector<double> values, double share);

// The median of n draws. Its standard error is the distance of the numbers at the ranks
// (n - 1)/2 +- 0.98 sqrt(n), between two on the line through them, over 2 * 1.96: median and 1.96
// standard errors hold the median of the law with 93 to 97 %, for 16 draws too.
Estimate median_estimate(const std::vector<double>& draws, Engine engine);

inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }

}  // namespace esscher
