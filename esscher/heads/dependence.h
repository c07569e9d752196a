// How much the keys of a head depend on their neighbours (estimate/autocorrelation.h):
//
//   kappa = 1 + 2 sum_j r_j,   r_j the autocorrelation of the keys at distance j
//
// A mean over n keys in this order is as uncertain as one over n/kappa independent keys. Kappa is 1
// for keys in random order, and large where keys drift or repeat. At most kDependenceKeys keys are
// read, the first ones, so that a head of a million keys costs no more.
#pragma once

#include <optional>

#include "esscher/heads/head.h"

namespace esscher {

inline constexpr Index kDependenceKeys = 2048;
inline constexpr double kFewestFreedoms = 8;

// The interval of 95 % is that of chi-square around kappa without its bias; scripts/calibrate counts
// how often it holds the kappa of autoregressions. Where the correlation does not fade within a
// quarter of the keys, or that of one coordinate within the window, or where the keys leave fewer
// than kFewestFreedoms degrees of freedom, kappa is a lower bound: `high` is infinite, and `low` is
// that of a single coordinate.
struct KeyDependence {
  double kappa = 1;
  double low = 1, high = 1;
};

// Nothing for fewer than 8 keys.
std::optional<KeyDependence> key_dependence(const Head& head);

}  // namespace esscher
