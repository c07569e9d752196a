// The table of contents of [GBB26]: its statements in our words, and ours about finite prompts.
#include "esscher/paper/mixture_statements.h"
#include "esscher/paper/papers.h"

namespace esscher::paper {

Paper mixtures() {
  return {
      .id = "mixtures",
      .about = "Gabet, Boursier and Boyer, Softmax Attention on Gaussian Mixtures",
      .title = "Softmax attention on Gaussian mixtures, checked",
      .lead =
          "What Gabet, Boursier and Boyer say about softmax attention on prompts from Gaussian "
          "mixtures (arXiv 2610.11798), measured, and what finite prompts add to it. On an "
          "infinite prompt a head is a sum of gated affine experts; one head with a residual "
          "denoises two clusters as well as Bayes' rule. The statements are our reading of their "
          "results and may differ from theirs in hypotheses and constants. Each section gives a "
          "verdict computed from what was measured.",
      .statements = {gated_experts(), classification_optima(), denoising_heads(),
                     denoising_clusters(), denoising_adapts(), denoising_finite_prompts()}};
}

}  // namespace esscher::paper
