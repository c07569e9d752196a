// What prompts of length L do on average at one query z, whether they have a limit or not:
//
//   output    E[T_hat(z)], T_hat = V sum omega z' over all tokens; sinks have the value 0
//   variance  E|T_hat - E T_hat|^2
//   weights2  E sum omega^2, one over the effective sample size
//   weights   the expected weight of every part (part_names)
//
// The exact engine needs a score law of every group (prompt/exact_prompt.h), the sampled one Gaussian
// tokens or mixtures, the direct one nothing. Student tokens, which have no limit, are served too.
#pragma once

#include "esscher/prompt/errors.h"

namespace esscher {

struct PromptAverages {
  Vector output;        // [dv]
  Vector output_error;  // [dv] its standard errors, 0 where nothing was sampled
  double variance = 0;
  double weights2 = 0;
  Vector weights;  // [parts]
  Engine engine = Engine::exact;
};

// At least two replicates for the engines that draw.
PromptAverages prompt_averages(const Prompt& prompt, const Attention& attention,
                               const VectorView& z, std::int64_t L,
                               const PromptOptions& options = {});

// A prompt of length L as the finite measure that it is: one token per row, in the order given,
// groups, the query's own, sinks. A sink is the token 0, whose score is 0. The groups are drawn as
// the direct engine draws them; without groups nothing is random.
struct DrawnPrompt {
  Matrix tokens;                  // [n,d]
  Vector log_weight;              // [n], beside the score; tokens of weight 0 are left out
  std::vector<std::size_t> part;  // [n], the place in part_names

  // The same with weights e^{log_weight}, at the tilt a [d]. CapabilityError where log-weights are so
  // far apart that doubles cannot hold weights that matter.
  [[nodiscard]] Empirical measure(const VectorView& a) const;
  [[nodiscard]] Vector softmax(const VectorView& a) const;  // omega [n]
};
DrawnPrompt draw_prompt(const Prompt& prompt, const VectorView& z, std::int64_t L,
                        const Stream& stream);

// h = sum omega^2 of drawn prompts: its median tells the typical prompt, which the mean does not
// where rare prompts carry it.
Estimate median_weights2(const Prompt& prompt, const Attention& attention, const VectorView& z,
                         std::int64_t L, int draws, const Stream& stream);

}  // namespace esscher
