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

// Third and fourth cumulants in directions u = a/k and v, w orthogonal to it and to each other:
//
//   along3 = kappa_uuu = along'            mixed3 = kappa_uvv = across' = (along - across)/k
//   along4 = kappa_uuuu = along''          mixed4 = kappa_uuvv = mixed3'
//   across4 = kappa_vvww = mixed3/k        (kappa_vvvv = 3 across4)
//
// Primes are derivatives in k. D_j is proportional to k^{2j}, so that d/dk < h > = 2 cov(j, h) / k,
// and each derivative is a joint cumulant of j and of h under the weights D_j. For large k the
// expansion A = sum_n c_n k^-n is differentiated term by term; c_n follows from the equation for A'
// above. At d = 1 there are no directions v, w, and their cumulants are 0.
struct BesselCumulants {
  double along3 = 0, mixed3 = 0;
  double along4 = 0, mixed4 = 0, across4 = 0;
};
BesselCumulants bessel_cumulants(Index d, double k);

}  // namespace esscher
