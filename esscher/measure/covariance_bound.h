// A number that the largest eigenvalue of the tilted covariance C_a does not exceed for |a| <= radius,
// read from the structure of a law:
//
//   Gaussian, stationary  lambda_max(G)          elliptical  w l + w^2 l^2 radius^2/4, w the largest
//   atoms                 squared radius about             factor, l = lambda_max(G)
//                         their mean                   sphere, ball, uniform, Rademacher  C_0, since
//                                                      their covariance is largest without a tilt
//   Laplace               its variance at |a_i| = radius, infinite from 1/b on
//   affine images |B|^2 (inner at |B| radius)    products the largest    sums the sum
//   mixtures              the largest, plus the squared spread that the tilted means can have
#pragma once

#include <optional>

#include "esscher/measure/any_measure.h"

namespace esscher {

// Empty for measures of a user, single-index laws and Student laws; infinite where there is none.
std::optional<double> covariance_bound(const AnyMeasure& mu, double radius);

}  // namespace esscher
