// One question, three engines: how is an expectation over prompts of length L computed?
//
//   exact    Gaussian tokens and mixtures, every metric. Any prompt whose laws have a score law
//            (measure/score_law.h): output and grad_v. No token is sampled.
//   sampled  Gaussian tokens and mixtures: scores are drawn instead of tokens, exact in law. Prompts
//            of such groups without alibi: output and grad_v.
//   direct   any measure that can be sampled: whole tokens are drawn and attended to.
//
// The choice is made here, before any work, and says why. A study makes it for each metric.
#pragma once

#include <string>

#include "esscher/attention/attention.h"
#include "esscher/base/estimate.h"
#include "esscher/measure/any_measure.h"
#include "esscher/prompt/prompt.h"

namespace esscher {

struct EngineChoice {
  Engine engine = Engine::exact;  // never automatic
  std::string reason;             // one sentence without its full stop
};

// The largest standard deviation of the scores that a query [n,d] gives to the tokens, over all
// queries and all components; 0 where tokens are no Gaussian mixture, infinity where it overflows.
double largest_tau(const AnyMeasure& mu, const Attention& attention, const MatrixView& queries);

// The engine that serves iid tokens at scores of standard deviation up to largest_tau. Automatic
// is exact where that reaches so far, else sampled, else direct. An engine that is asked for and
// cannot serve is refused with a CapabilityError that names the one that can. `covariance` says
// whether a metric reads the covariance (reads_covariance).
EngineChoice choose_engine(Engine asked, const AnyMeasure& mu, double largest_tau = 0,
                           bool covariance = false);

// The engine that serves this prompt at all these queries [n,d]. The scores of queries are looked at
// for automatic only: an engine that is asked for by name refuses sharp scores itself.
EngineChoice choose_engine(Engine asked, const Prompt& prompt, const Attention& attention,
                           const MatrixView& queries, bool covariance);

}  // namespace esscher
