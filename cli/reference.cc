#include "cli/reference.h"

#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/heads/mixture_fit.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/random/stream.h"

namespace esscher::cli {

AnyMeasure gaussian_fit(const Empirical& prompt) {
  return Gaussian(prompt.mean(), prompt.tilted_cov(Vector::Zero(prompt.dim())));
}

AnyMeasure mixture_fit(const Empirical& prompt, Index k, std::uint64_t seed) {
  if ((prompt.weights().array() != prompt.weights()(0)).any()) {
    throw CapabilityError("mixture-fit: the tokens have weights, expected equal ones");
  }
  const MixtureFit fit = fit_mixture(prompt.tokens(), k, Stream(seed));
  std::vector<AnyMeasure> parts;
  for (std::size_t c = 0; c < fit.means.size(); ++c) {
    parts.emplace_back(Gaussian(fit.means[c], fit.covs[c]));
  }
  return Mixture(fit.weights, std::move(parts));
}

}  // namespace esscher::cli
