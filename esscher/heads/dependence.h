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

// The interval of 95 % held kappa in 92 to 94 % of autoregressions of one coordinate, and in all of
// those of several coordinates, for which it is wide (tests/heads). Where the correlation does not fade within a
// quarter of the keys, kappa is a lower bound and `high` is infinite.
struct KeyDependence {
  double kappa = 1;
  double low = 1, high = 1;
};

// Nothing for fewer than 8 keys.
std::optional<KeyDependence> key_dependence(const Head& head);

}  // namespace esscher
