// Is this head linear in disguise, and from which prompt length on? For each query, with the prompt
// it really had: the softmax output T, its surrogates, and the exact Gaussian control.
//
//   lin = |T - T_s| / |T|,   lin_c = |T - T_s| / |T - Vbar|   (1: no better than the mean value)
//
// All figures are medians over queries. "Split" fits on a random half of the keys and judges on the
// other half, so that a mixture is not praised for memorising.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "esscher/heads/control.h"
#include "esscher/heads/head.h"
#include "esscher/heads/mixture_fit.h"
#include "esscher/heads/surrogate.h"
#include "esscher/json/json.h"

namespace esscher {

struct HeadOptions {
  std::vector<Index> queries;  // empty: default_queries(head, most_queries)
  Index most_queries = 128;
  std::vector<Index> components = {2, 4, 8, 16, 32};
  Index fit_keys = 8192;  // evenly spaced keys a mixture is fitted to
  std::uint64_t seed = 0;
  double tolerance = 0.1;  // lin_c that counts as linear
  MixtureFitOptions fit;
};

// Medians over queries of the two relative errors.
struct SurrogateError {
  double lin = 0;
  double lin_c = 0;
};

// The exact error of a mixture's limit on prompts drawn from it, relative to the measured
// |T - Vbar| (mixture_control() of heads/control.h).
struct MixtureControl {
  double lin_c = 0;   // median over the queries in reach of the exact engine with |T - Vbar| > 0
  Index queries = 0;  // how many those are
};

struct MixtureRow {
  Index k = 0;
  SurrogateError in_sample;
  std::optional<SurrogateError> split;    // none if half of the keys are too few for k components
  std::optional<MixtureControl> control;  // none if no query is in reach
  int steps = 0;                          // of EM, over all keys
  bool converged = false;                 // so were the fits over all keys and over the fitted half
};

// The same head on the first n keys only, next to the exact Gaussian prediction.
struct PrefixRow {
  Index n = 0;
  double lin_c = 0;
  double control = 0;      // median over queries
  double control_low = 0;  // 10 % and 90 % over queries
  double control_high = 0;
};

struct HeadDiagnosis {
  std::string name;
  Index n = 0, dk = 0, dv = 0, queries = 0;
  bool causal = false;
  double scale = 1;

  double tau2 = 0, tau2_low = 0, tau2_high = 0;  // score variance: median and 5 %, 95 %
  double ess = 0;                                // 1 / sum omega^2
  double frozen = 0;                             // share of queries with n < e^{tau2}
  double kurtosis = 3;                           // of the scores; 3 for Gaussian keys
  double top_weight = 0;                         // largest omega
  double dominant = 0;  // share of queries that give more than half their weight to one same key

  SurrogateError mean_only, uncentred, gaussian, gaussian_split;
  std::vector<MixtureRow> mixtures;
  double control_lin_c = 0;      // exact, same n and moments, Gaussian keys
  std::int64_t linear_from = 0;  // median query within tolerance; kNeverLinear beyond 10^15

  std::string verdict;
  std::string reason;
  std::vector<PrefixRow> prefixes;
  Vector score_histogram;  // density of (s - mean)/tau in kHistogramBins bins over [-5, 5]
  Index best_k = 0;        // the best mixture on unseen keys; 0 if there is none
  Vector score_mixture;    // the same density for keys from that mixture; empty if there is none
};

inline constexpr Index kHistogramBins = 50;

HeadDiagnosis diagnose(const Head& head, const HeadOptions& options = {});
// Several at a time, one per thread.
std::vector<HeadDiagnosis> diagnose(const std::vector<Head>& heads, const HeadOptions& options);

// The surrogates over the whole prompt, for export: the Gaussian limit, then one per number of
// components that the keys allow.
std::vector<Surrogate> fit_surrogates(const Head& head, const HeadOptions& options = {});

// One row of `esscher heads --json`.
Json to_json(const HeadDiagnosis& diagnosis);

}  // namespace esscher
