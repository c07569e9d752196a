// E_prompt |X_hat_L - X|^2 at one query: the one place that computes errors of prompts, for all
// metrics and lengths at once, by any engine (prompt/engine.h).
//
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
#include <vector>

#include "esscher/attention/attention.h"
#include "esscher/attention/metric.h"
#include "esscher/base/estimate.h"
#include "esscher/base/length.h"
#include "esscher/measure/any_measure.h"
#include "esscher/prompt/prompt.h"
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
  // E of the total weight of every part of a prompt (part_names); empty for a measure alone.
  std::vector<double> weights = {};
  // E T_hat [dv] and its standard errors; filled by prompt_averages() alone (prompt/averages.h).
  Vector output = {}, output_error = {};
};

struct PromptOptions {
  Engine engine = Engine::automatic;
  std::int64_t replicates = 256;  // prompts, of which the exact engine draws none
  Stream stream{0};               // replicate i reads stream.split(i), for any number of threads
};

// [metrics][lengths]; lengths increasing, >= 1, and at least one replicate.
std::vector<std::vector<QueryError>> query_errors(const std::vector<Metric>& metrics,
                                                  const AnyMeasure& mu, const Attention& attention,
                                                  const VectorView& z,
                                                  const std::vector<std::int64_t>& lengths,
                                                  const PromptOptions& options = {});

// The same for any prompt. Lengths count all its tokens. Where the prompt has no limit, errors are
// about its saturation value, which score laws give (exact_prompt.h); without them it is refused.
std::vector<std::vector<QueryError>> query_errors(const std::vector<Metric>& metrics,
                                                  const Prompt& prompt, const Attention& attention,
                                                  const VectorView& z,
                                                  const std::vector<std::int64_t>& lengths,
                                                  const PromptOptions& options = {});

// One metric at one length, 0 at L = infinity; at least two replicates. The answer names the engine
// that made it. An engine that cannot serve throws CapabilityError and names one that can.
Estimate mean_square_error(Metric metric, const AnyMeasure& mu, const Attention& attention,
                           const VectorView& z, Length L, const PromptOptions& options = {});
Estimate mean_square_error(Metric metric, const Prompt& prompt, const Attention& attention,
                           const VectorView& z, Length L, const PromptOptions& options = {});

}  // namespace esscher
