// How heads are diagnosed (heads/diagnose.h).
#pragma once

#include <cstdint>
#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/heads/mixture_fit.h"

namespace esscher {

struct HeadOptions {
  std::vector<Index> queries;  // empty: default_queries(head, most_queries)
  Index most_queries = 128;
  std::vector<Index> components = {2, 4, 8, 16, 32};  // sizes of the mixtures to try, each >= 2
  Index fit_keys = 8192;  // a mixture is fitted to at most so many evenly spaced keys
  // Moments of mixtures are those of at most so many evenly spaced keys, and longer prompts have no
  // windows with a mixture behind them: both would cost many times what reading the prompt does.
  Index mixture_keys = 65536;
  std::uint64_t seed = 0;                        // starts of the fits
  double tolerance = 0.1;                        // a lin_c up to this counts as linear
  std::vector<Index> windows = {8, 16, 32, 64};  // exact keys to try (heads/window.h); empty: none
  Index sinks = 1;                               // of them, the first keys of the prompt
  // Also try windows that keep so many heavy keys beside them (heads/window.h), where a causal head
  // has a query for every key, as a decoding loop has; 0: none.
  Index heavy = 0;
  // Memories to compare methods in (heads/budget.h), in keys; empty: no comparison.
  std::vector<Index> budgets = {};
  Index gap = -1;  // queries between calibration and test; below 0: an eighth of them, at most 64
  MixtureFitOptions fit;
};

// Histograms of standardised scores have this many equal bins over [-5, 5].
inline constexpr Index kHistogramBins = 50;

}  // namespace esscher
