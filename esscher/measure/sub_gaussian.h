// The sub-Gaussian proxy where no closed form is known:
//
//   sigma^2 = sup_a f(a),   f(a) = 2 (Lambda(a) - <a,m>) / |a|^2,   f(0) = lambda_max(Cov)
//
// A stationary point of f satisfies m_a - m = f(a) a, and the map a -> (m_a - m) / f(a) never
// lowers f: Lambda is convex, so it lies above its tangent at a. The search runs this map from a
// grid of radii along the principal axes of the covariance and along the farthest tokens of a
// fixed sample, and keeps the best value. It is exact where one of these starts lies in the basin
// of the global maximum (always seen so in tests, in one dimension by a dense scan); in
// general it is a lower bound of sigma.
#pragma once

#include "esscher/measure/any_measure.h"

namespace esscher {

double numeric_sub_gaussian(const AnyMeasure& measure);

}  // namespace esscher
