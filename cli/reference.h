// Measures fitted to a prompt, beside which its own attention is shown.
#pragma once

#include <cstdint>

#include "esscher/measure/any_measure.h"
#include "esscher/measure/empirical.h"

namespace esscher::cli {

// The Gaussian with the tokens' own mean and covariance.
AnyMeasure gaussian_fit(const Empirical& prompt);

// The mixture of k Gaussians that expectation-maximisation finds (heads/mixture_fit.h), k <= tokens.
// CapabilityError for tokens with weights.
AnyMeasure mixture_fit(const Empirical& prompt, Index k, std::uint64_t seed);

}  // namespace esscher::cli
