// How much the rows of a sequence x_1 .. x_n in R^k depend on their neighbours:
//
//   r_j   = sum_l <x_l - m, x_{l+j} - m> / sum_l |x_l - m|^2          m the mean of all rows
//   kappa = 1 + 2 sum_{j <= window} r_j                               "n rows are worth n/kappa"
//
// The window is the shortest one with window >= 5 kappa, at most n/4: beyond it the r_j are noise.
// The standard error of kappa is kappa sqrt(2 (2 window + 1)/n) (Madras and Sokal 1988).
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

struct Autocorrelation {
  Vector r = {};  // [window], r_1 .. r_window
  double kappa = 1;
  double std_error = 0;
  bool is_cut = false;  // the window ended at n/4: the sequence is too short to show its kappa

  [[nodiscard]] Index window() const { return r.size(); }
};

// x [n,k], n >= 8. A constant sequence has kappa 1.
Autocorrelation autocorrelation(const MatrixView& x);

}  // namespace esscher
