// Third and fourth cumulants of a tilted measure, contracted with symmetric matrices W, Y [d,d]:
//
//   third_w_k = sum_ij W_ij kappa_ijk     third_y likewise, with Y
//   fourth    = sum_ijkl W_ij Y_kl kappa_ijkl
//
// kappa are the derivatives of Lambda of order three and four at the tilt. The whole tensors are
// never formed. The measures of the library have closed forms; a measure without them gets
// differences of its covariance (differenced_cumulants).
//
// With x centred, of covariance C and of these cumulants, fourth moments are
//
//   E (x'Wx)(x'Yx) = fourth + tr WC tr YC + 2 tr WCYC
#pragma once

#include <functional>

#include "esscher/base/linalg.h"

namespace esscher {

struct HigherCumulants {
  Vector third_w;  // [d]
  Vector third_y;  // [d]
  double fourth = 0;

  HigherCumulants& operator+=(const HigherCumulants& other);
};

// All zero, as for a Gaussian in d dimensions.
HigherCumulants no_higher_cumulants(Index d);

// E (y'Wy)(y'Yy) of y = x + shift, where x is centred with covariance C [d,d] and these cumulants.
double fourth_moment(const HigherCumulants& cumulants, const MatrixView& C, const VectorView& shift,
                     const MatrixView& W, const MatrixView& Y);

// n atoms with weights r [n] (sum 1) at deviations [n,d] from their mean.
HigherCumulants discrete_cumulants(const MatrixView& deviations, const VectorView& r,
                                   const MatrixView& W, const MatrixView& Y);

// From central differences of the covariance as a function of the tilt, extrapolated to step 0. The
// first step is half of 1/sqrt(largest eigenvalue), of the covariance at a or at 0, whichever is
// shorter, and shorter still where a step leaves the domain (DomainError). The accuracy is about
// 1e-8 of E (x'Wx)(x'Yx) if the law has no structure on scales below a hundredth of that.
using CovarianceAt = std::function<Matrix(const Vector&)>;
HigherCumulants differenced_cumulants(const CovarianceAt& cov, const VectorView& a,
                                      const MatrixView& W, const MatrixView& Y);

}  // namespace esscher
