// How many tokens of a prompt the best prediction reads at most (posterior_risk.h).
#pragma once

#include <limits>

#include "esscher/risk/posterior_risk.h"

namespace esscher {

inline constexpr std::int64_t kLongestFormula = 1 << 20;

constexpr std::int64_t longest_read(BayesBy by) {
  switch (by) {
    case BayesBy::formula: return kLongestFormula;
    case BayesBy::quadrature:
    case BayesBy::chains: return kLongestPosterior;
    default: return std::numeric_limits<std::int64_t>::max();
  }
}

}  // namespace esscher
