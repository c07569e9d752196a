// One question, three engines: how far is a prompt of length L from its limit, in mean square?
//
//   exact    Gaussian tokens and mixtures, every metric. No sampling.
//   sampled  Gaussian tokens and mixtures: scores are drawn instead of tokens, exact in law.
//   direct   any measure that can be sampled: whole tokens are drawn and attended to.
//   automatic  the first of these that serves the measure and the query.
//
// The answer names the engine that made it. An engine that cannot serve throws CapabilityError
// and names one that can.
#pragma once

#include <cstdint>

#include "esscher/attention/attention.h"
#include "esscher/attention/metric.h"
#include "esscher/base/estimate.h"
#include "esscher/base/length.h"
#include "esscher/measure/any_measure.h"
#include "esscher/random/stream.h"

namespace esscher {

// Replicate i draws from stream.split(i): the same prompts for any number of threads.
struct ReplicateOptions {
  std::int64_t replicates = 256;  // >= 2; the exact engine draws none
  Stream stream{0};
};

// The engine that `automatic` means here.
Engine choose_engine(const AnyMeasure& mu, const Attention& attention, const VectorView& z);

// E|X_hat - X|^2 over prompts of L tokens of mu, X chosen by the metric; 0 at L = infinity.
Estimate mean_square_error(Engine engine, Metric metric, const AnyMeasure& mu,
                           const Attention& attention, const VectorView& z, Length L,
                           const ReplicateOptions& options = {});

}  // namespace esscher
