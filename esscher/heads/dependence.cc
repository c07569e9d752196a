#include "esscher/heads/dependence.h"

#include <algorithm>
#include <limits>

#include "esscher/estimate/autocorrelation.h"
#include "esscher/estimate/interval.h"

namespace esscher {

std::optional<KeyDependence> key_dependence(const Head& head) {
  constexpr Index kFewest = 8;
  constexpr double kBeyond = std::numeric_limits<double>::infinity();
  if (head.n < kFewest) return std::nullopt;
  const Autocorrelation found = autocorrelation(head.K(0, std::min(head.n, kDependenceKeys)));
  const double middle = std::max(0.0, found.kappa + found.bias);
  const bool is_open = found.is_cut || !(found.kappa > 0) || found.dof < kFewestFreedoms;
  const double coordinates = is_open ? 1 : found.coordinates;
  const Interval ci = chi_square_interval(middle, found.dof * coordinates);
  return KeyDependence{.kappa = found.kappa, .low = ci.lo, .high = is_open ? kBeyond : ci.hi};
}

}  // namespace esscher
