#include "esscher/heads/detail/ratio.h"

#include <algorithm>

#include "esscher/estimate/quantile.h"

namespace esscher {

double median_ratio(const std::vector<double>& errors, const std::vector<double>& scales,
                    const std::vector<double>& norms) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const bool nothing = errors[i] <= 1e-13 * norms[i];
    ratios.push_back(nothing ? 0.0 : errors[i] / std::max(scales[i], 1e-300));
  }
  return median(ratios);
}

}  // namespace esscher
