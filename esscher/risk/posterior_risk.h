// What a finite prompt costs the best prediction, in simulations:
//
//   excess(L) = E loss(E[t | prompt, z]) - E loss(E[t | law, z])
//
// so that Bayes risk(L) = excess(L) + the risk of the prediction that knows the law. The second
// needs no prompt; the first falls like 1/L, and few prompts are enough for it. Where E[t | prompt,
// z] has a formula or a quadrature, it is read off fresh prompts. By chains (task/posterior.h),
// with the squared loss, f_0 = E[t | law, z] of the law that made the prompt, two chains from the
// prior (q, q') and two from the law itself (p, p'), all independent,
//
//   above   (q - f_0)'(q' - f_0)/2    exact if chains have forgotten their start, else more
//   below   (p - f_0)'(p' - f_0)/2    the same, else less
//
// The answer is the middle; half of the gap counts as an error besides that of the draws. With the
// logistic loss the excess losses of q and of p take these places.
#pragma once

#include <cstdint>
#include <optional>

#include "esscher/base/length.h"
#include "esscher/risk/risk.h"
#include "esscher/task/context.h"

namespace esscher {

// How the best prediction of a reference is found.
enum class BayesBy { known_law, formula, quadrature, chains, bound };

constexpr auto enum_names(BayesBy) {
  return EnumNames<BayesBy, 5>{"way to the best prediction",
                               {{{BayesBy::known_law, "known law"},
                                 {BayesBy::formula, "formula"},
                                 {BayesBy::quadrature, "quadrature"},
                                 {BayesBy::chains, "chains"},
                                 {BayesBy::bound, "bound"}}}};
}

// known_law: every prompt has the same law, or tells it. bound: the best prediction is not
// computed, and that of the known law bounds it. Chains and quadratures read the first
// kLongestPosterior tokens, formulas the first 2^20.
BayesBy bayes_by(const ContextTask& task, Length length);
inline constexpr std::int64_t kLongestPosterior = 4096;

// The excess where bayes_by is a formula, quadrature or chains, of about 1e8 evaluations of a token.
// That of a longer prompt than is read lies between 0 and that of its part: the middle is given.
Estimate posterior_excess(const ContextTask& task, Length length, const RiskOptions& options);

}  // namespace esscher
