// Recognises Gaussian laws inside composed measures, so that engines that need N(m,G), or a mixture
// of such laws, work however the law was written.
#pragma once

#include <optional>
#include <vector>

#include "esscher/measure/any_measure.h"

namespace esscher {

struct GaussianLaw {
  Vector mean;  // [d]
  Matrix cov;   // [d,d] PSD
};

struct GaussianMixtureLaw {
  Vector weights;                       // [k], sum 1
  std::vector<GaussianLaw> components;  // [k]
};

// Recognises Gaussians, points (Dirac), affine images, products and sums of them, single-index laws
// of an affine link, and mixtures of these with one component. Empty for any other measure.
std::optional<GaussianLaw> gaussian_law(const AnyMeasure& measure);

// Recognises all of the above (with one component), elliptical laws, mixtures of mixtures, and
// affine images, products and sums of mixtures, whose components multiply out. Empty for any other
// measure and beyond kMaxMixtureComponents components.
inline constexpr Index kMaxMixtureComponents = 10000;
std::optional<GaussianMixtureLaw> gaussian_mixture_law(const AnyMeasure& measure);

}  // namespace esscher
