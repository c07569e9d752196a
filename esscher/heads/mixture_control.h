// The control of a mixture: what the error of its limit WOULD be if each query's prompt were n
// tokens drawn from the mixture fitted to that very prompt. Exact (prompt/exact_mixture.h),
// relative to the measured |T - Vbar|:
//
//   sqrt(E|T_hat - T_mix|^2) / |T - Vbar|
//
// T_mix is the limit of the mixture that is drawn from, not fitted again to each draw, so this is
// to be read beside the error on unseen keys. The integrals are dear: at most
// kMixtureControlQueries evenly chosen queries take part, and only those the exact engine reaches
// (score deviation of every component at most kMaxMixtureTau).
#pragma once

#include <optional>
#include <vector>

#include "esscher/heads/walk.h"

namespace esscher {

inline constexpr std::size_t kMixtureControlQueries = 8;

// `results` are those of `queries`, `model` is over all keys; none if no query can be served.
std::optional<MixtureControl> mixture_control(const Head& head, const std::vector<Index>& queries,
                                              const std::vector<PromptResult>& results,
                                              const SurrogateModel& model);

}  // namespace esscher
