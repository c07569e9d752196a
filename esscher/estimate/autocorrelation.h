// How much the rows of a sequence x_1 .. x_n in R^k depend on their neighbours:
//
//   r_j   = sum_l <x_l - m, x_{l+j} - m> / sum_l |x_l - m|^2          m the mean of all rows
//   kappa = 1 + 2 sum_{j <= window} r_j                               "n rows are worth n/kappa"
//
// The window is the shortest one with window >= 5 kappa and window >= 5, at most n/4: beyond it the
// r_j are noise. kappa is an estimate of a spectral density at frequency zero, and varies like
// chi-square. One coordinate has
//
//   dof = n / (2 window + 1 - kappa)
//
// degrees of freedom (Wolff 2004, equation 42). Where neighbours repel each other, kappa < 1, the
// window also sees frequencies at which keys vary more, and their part is taken from the r_j:
//
//   dof = n kappa^2 / sum_m (b_m - kappa r_m)^2,   b_m = sum of r_j over |j| and |m - j| <= window
//
// Coordinates that fade alike average the noise down, one slow coordinate among fast ones does not.
// They count as
//
//   coordinates = (tr S)^2 / tr S^2,   standard error kappa sqrt(2/(dof coordinates))
//
// with S their covariance summed over the window, and tr S^2 without the part that is noise of dof
// degrees of freedom (Bai and Saranadasa 1996). The mean that is subtracted lowers kappa by
// kappa (2 window + 1)/n (Wolff 2004), which is `bias` and not corrected here. Where the window is
// shorter than twice the kappa of one coordinate alone, that coordinate is not seen to its end, and
// kappa is a lower bound.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

struct Autocorrelation {
  Vector r = {};  // [window], r_1 .. r_window
  double kappa = 1;
  double dof = 0;          // degrees of freedom of chi-square of one coordinate
  double coordinates = 1;  // that vary as if independent, 1 .. k
  double std_error = 0;
  double bias = 0;      // how much kappa is below its mean, to first order
  bool is_cut = false;  // a lower bound: the window ended at n/4, or before a coordinate faded

  [[nodiscard]] Index window() const { return r.size(); }
};

// x [n,k], n >= 8. A constant sequence has kappa 1.
Autocorrelation autocorrelation(const MatrixView& x);

}  // namespace esscher
