// Recognising Gaussian laws inside composed measures, so that engines which need N(m,G), or a
// mixture of such, work on every way of writing one.
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

// Gaussian; affine images, products and sums of Gaussians; one-component mixtures of these.
std::optional<GaussianLaw> gaussian_law(const AnyMeasure& measure);

// All of the above (one component), mixtures of mixtures, and affine images, products and sums of
// mixtures (components multiply out). Refuses beyond kMaxMixtureComponents components.
inline constexpr Index kMaxMixtureComponents = 10000;
std::optional<GaussianMixtureLaw> gaussian_mixture_law(const AnyMeasure& measure);

}  // namespace esscher
