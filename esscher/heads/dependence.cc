#include "esscher/heads/dependence.h"

#include <algorithm>
#include <limits>

#include "esscher/estimate/autocorrelation.h"

namespace esscher {

std::optional<KeyDependence> key_dependence(const Head& head) {
  constexpr Index kFewest = 8;
  constexpr double kTwoSided = 1.96;  // the 97.5 % quantile of a normal variable
  if (head.n < kFewest) return std::nullopt;
  const Autocorrelation found = autocorrelation(head.K(0, std::min(head.n, kDependenceKeys)));
  const double middle = found.kappa + found.bias, half = kTwoSided * found.std_error;
  return KeyDependence{
      .kappa = found.kappa,
      .low = std::max(0.0, middle - half),
      .high = found.is_cut ? std::numeric_limits<double>::infinity() : middle + half};
}

}  // namespace esscher
