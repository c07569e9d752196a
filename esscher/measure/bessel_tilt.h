// The uniform law on the unit sphere of R^d, tilted by a with k = |a|; nu = d/2 - 1:
//
//   log_mgf = log 0F1(; d/2; k^2/4)
//   across  = A/k,  A = I_{nu+1}(k)/I_nu(k)      variance across a; the mean is across * a
//   along   = A' = 1 - A^2 - (d-1) A/k           variance along a
//
// The formula for A' cancels like k^2. Instead all three come from one series of positive terms,
//
//   I_nu(k)^2 ~ sum_j D_j,   D_0 = 1,   D_{j+1}/D_j = k^2 (2nu+2j+1) / (2 (2nu+j+1)(j+1)(nu+j+1))
//   log_mgf = log(sum_j D_j)/2
//   across  = < (nu+1/2+j) / ((2nu+1+j)(nu+1+j)) >        < . > = average with weights D_j
//   along   = < (nu+1/2)   / ((2nu+1+j)(nu+1+j)) >
//
// and from Hankel's expansion if k is large against nu^2. d = 1 is the Rademacher law.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

struct BesselTilt {
  double log_mgf = 0;
  double across = 0;
  double along = 0;
};

// d >= 1, k >= 0 finite.
BesselTilt bessel_tilt(Index d, double k);

}  // namespace esscher
