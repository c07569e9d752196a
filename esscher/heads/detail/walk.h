// One pass over the prompt of a head, chunk by chunk, so that the head may be larger than memory.
// The softmax averages of all queries (detail/truth.h) and the moments of every surrogate grow
// together, and each query is evaluated at the key where its own prompt ends.
#pragma once

#include <optional>
#include <vector>

#include "esscher/heads/control.h"
#include "esscher/heads/head.h"
#include "esscher/heads/mixture_fit.h"
#include "esscher/heads/options.h"
#include "esscher/heads/surrogate.h"

namespace esscher {

inline constexpr Index kHeadChunk = 8192;  // keys in memory at a time

// True if the key belongs to the half that split surrogates are fitted to. Each key goes there with
// probability 1/2, independently, so that a periodic pattern of the prompt cannot end up in one
// half.
bool is_fitted(Index key);

// Mixtures take every so many keys of a prompt of n (HeadOptions::mixture_keys).
Index mixture_stride(Index n, Index mixture_keys);

// A surrogate with k components over all keys, or over the fitted half of the split. The mixture
// decides which component a key belongs to; the moments are those of the keys seen so far.
struct SurrogateModel {
  Index k;
  bool split;
  std::optional<MixtureFit> fit;  // none for k = 1
  PromptMoments moments;

  [[nodiscard]] double floor() const { return fit ? fit->floor : 0.0; }
};

// One model per k for each of `splits` (false: all keys, true: the fitted half), k = 1 first. A k
// with fewer than 4 keys per component is left out.
std::vector<SurrogateModel> fit_models(const Head& head, const HeadOptions& options,
                                       const std::vector<bool>& splits);

// What is measured for one query at the end of its prompt.
struct PromptResult {
  Vector a;                                   // scale * q
  Vector T;                                   // softmax output
  double n = 0;                               // keys in its prompt
  double norm = 0, signal = 0;                // |T|, |T - Vbar|
  double norm_unseen = 0, signal_unseen = 0;  // the same on unseen keys, Vbar of the fitted ones
  double ess = 0, kurtosis = 3, top_weight = 0;
  Index top_key = -1;
  ScoreMoments moments;
  double uncentred = 0;          // |T - E[v k'] a|
  std::vector<double> errors;    // |T - T_model|, one per model
  std::vector<double> controls;  // mixture_control() per model; kNoControl for k = 1 and on a split
};

// Measures every query at the end of its prompt; the moments of `models` grow to the whole prompt.
std::vector<PromptResult> walk_prompt(const Head& head, const std::vector<Index>& queries,
                                      std::vector<SurrogateModel>& models,
                                      Index mixture_keys = HeadOptions().mixture_keys);

// The same for a head with rules (heads/rules.h); the moments of `models` end on the last query.
std::vector<PromptResult> walk_ruled(const Head& head, const std::vector<Index>& queries,
                                     std::vector<SurrogateModel>& models);

// At most 16 of them, evenly spaced: enough for what is simulated or repeated per query.
std::vector<PromptResult> few_of(const std::vector<PromptResult>& results);

}  // namespace esscher
