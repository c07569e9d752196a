// Relative errors over queries.
#pragma once

#include <vector>

namespace esscher {

// Median over queries of error / scale. An error that is rounding of |T| counts as 0, also where
// there is nothing to explain and the scale is rounding too.
double median_ratio(const std::vector<double>& errors, const std::vector<double>& scales,
                    const std::vector<double>& norms);

}  // namespace esscher
