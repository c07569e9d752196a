// The sub-Gaussian proxy where no closed form is known:
//
//   sigma^2 = sup_a f(a),   f(a) = 2 (Lambda(a) - <a,m>) / |a|^2,   f(0) = lambda_max(Cov)
//
// A stationary point of f satisfies m_a - m = f(a) a. The map a -> (m_a - m) / f(a) never lowers f,
// since Lambda is convex and lies above its tangent at a. The search takes the best radius along
// the principal axes of the covariance, along the tokens of a fixed small sample and towards atoms
// and components, runs this map from the best of these starts, and keeps the largest value. An atom
// of weight p at distance D from the mean of the rest gives, by Jensen,
//
//   sigma^2 >= D^2 (1 - 2p) / (2 log((1-p)/p)),   attained near |a| = 2 log((1-p)/p) / D
//
// however rare it is; a sample would miss it. Every value of f is attained at some
// a, so the answer never exceeds sigma. It equals sigma if a start lies in the basin of the global
// maximum. Tests check this for two atoms, for the closed forms and, by dense scans, in one
// dimension.
#pragma once

#include "esscher/measure/any_measure.h"

namespace esscher {

double numeric_sub_gaussian(const AnyMeasure& measure);

}  // namespace esscher
