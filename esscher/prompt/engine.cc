#include "esscher/prompt/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/base/error.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/measure/stationary.h"
#include "esscher/prompt/exact_mixture.h"

namespace esscher {
namespace {

[[noreturn]] void refuse_measure(Engine asked, const AnyMeasure& mu) {
  if (is_dependent(mu)) {
    throw CapabilityError(std::string(name(asked)) + " engine: the tokens of " + mu.name() +
                          " measures depend on each other, and it needs independent ones; use "
                          "engine = \"direct\"");
  }
  if (asked == Engine::exact) {
    throw CapabilityError("exact engine: none for " + mu.name() +
                          " tokens; use engine = \"direct\"");
  }
  throw CapabilityError("sampled engine: tokens must be Gaussian or a Gaussian mixture, not " +
                        mu.name() + "; use engine = \"direct\"");
}

}  // namespace

double largest_tau(const AnyMeasure& mu, const Attention& attention, const MatrixView& queries) {
  const auto law = gaussian_mixture_law(mu);
  if (!law) return 0;
  double largest = 0;
  for (Index q = 0; q < queries.rows(); ++q) {
    const Vector a = attention.tilt(queries.row(q).transpose());
    if (!a.allFinite()) return std::numeric_limits<double>::infinity();
    for (const GaussianLaw& part : law->components) {
      largest = std::max(largest, score_tau(part, a));
    }
  }
  return largest;
}

EngineChoice choose_engine(Engine asked, const AnyMeasure& mu, double largest_tau) {
  if (asked == Engine::quadrature) {
    throw CapabilityError(
        "quadrature engine: the errors of attention have none; use engine = \"exact\"");
  }
  const auto law = gaussian_mixture_law(mu);
  const std::string what = "tokens are " + mu.name();
  if (!law && (asked == Engine::exact || asked == Engine::sampled)) refuse_measure(asked, mu);
  if (!law || asked == Engine::direct) return {Engine::direct, what + ": tokens are drawn"};
  EngineChoice sampled{Engine::sampled, what + ": scores are sampled (exact in law)"};
  if (asked == Engine::sampled) return sampled;
  const double reach = law->components.size() > 1 ? kMaxMixtureTau : kMaxTau;
  if (largest_tau <= reach) return {Engine::exact, what + ": exact, no token is sampled"};
  if (asked == Engine::exact) {
    throw CapabilityError(
        "exact engine: scores have standard deviation tau = " + to_text(largest_tau) +
        " and it reaches tau = " + to_text(reach) + "; the sampled engine can serve them");
  }
  sampled.reason += ", because scores beyond tau = " + to_text(reach) + " have no exact engine";
  return sampled;
}

}  // namespace esscher
