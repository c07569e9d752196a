// E_prompt |X_hat_L - X|^2 at one query, for all metrics and lengths at once, by the engine asked
// for.
//   exact    Gaussian tokens and mixtures; no sampling
//   sampled  Gaussian tokens and mixtures: scores drawn instead of tokens
//   direct   any measure, tokens drawn by sample(); user data is resampled
// One prompt of the longest length serves every metric and every shorter length (prefixes), so
// points of a curve share random numbers.
//
// With R prompts of errors e_r, |average e|^2 has the mean bias2 + variance/R and the average of
// |e|^2 has the mean bias2 + variance, hence the unbiased
//   bias2 = (R |average e|^2 - average |e|^2) / (R - 1),
// which may be negative; averages over queries keep the sign and are clipped once, at the end.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "esscher/attention/attention.h"
#include "esscher/attention/metric.h"
#include "esscher/base/estimate.h"
#include "esscher/measure/any_measure.h"
#include "esscher/random/stream.h"

namespace esscher {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct QueryError {
  double value = 0;
  double std_error = 0;     // over prompts; 0 for exact, and for one prompt, which shows no spread
  double bias2 = kUnknown;  // |E X_hat - X|^2; unknown from one prompt
  double weights2 = 0;      // E sum omega^2: one over the effective sample size
  // Covariances over prompts of value with the values at shorter lengths, shortest first, and with
  // itself: prefixes of one prompt move together. Empty where there is no std_error.
  std::vector<double> cov = {};
};

struct EngineChoice {
  Engine engine = Engine::exact;  // never automatic
  std::string reason;             // one sentence
};
// Exact where it exists, else sampled, else direct; CapabilityError if the engine asked for does
// not exist for this measure, naming the one that does.
EngineChoice choose_engine(Engine asked, const AnyMeasure& mu);

// The best engine that samples: scores for Gaussian mixtures, else tokens.
EngineChoice sampling_engine(const AnyMeasure& mu);

// [metrics][lengths]; lengths increasing, >= 1. Replicate i reads stream.split(i).
std::vector<std::vector<QueryError>> query_errors(Engine engine, const std::vector<Metric>& metrics,
                                                  const std::vector<std::int64_t>& lengths,
                                                  const AnyMeasure& mu, const Attention& attention,
                                                  const VectorView& z, std::int64_t replicates,
                                                  const Stream& stream);

}  // namespace esscher
