// How large the limit itself is: E_z |X|^2 of a metric, over the queries of a problem. An error is
// called relative when it is divided by it:
//
//   relative mean-square error       D(L) / E_z |X|^2
//   relative root-mean-square error  ( D(L) / E_z |X|^2 )^{1/2}
#pragma once

#include <cmath>
#include <limits>

#include "esscher/attention/metric.h"
#include "esscher/concentration/problem.h"
#include "esscher/estimate/interval.h"

namespace esscher {

struct LimitSize {
  double mean_square = std::numeric_limits<double>::quiet_NaN();  // NaN where a query has no limit
  double std_error = 0;  // of the queries that stand for their law; 0 in closed form
  Interval ci = {mean_square, mean_square};  // 95 %, as skewed as squares are

  // The root-mean-square error of D = value as a fraction of the limit; NaN for a limit of zero.
  [[nodiscard]] double relative_rms(double value) const {
    return mean_square > 0 ? std::sqrt(value / mean_square)
                           : std::numeric_limits<double>::quiet_NaN();
  }
};

// |X|^2 at one query; DomainError where X does not exist.
double limit_norm2(Metric metric, const Problem& problem, const VectorView& z);

}  // namespace esscher
