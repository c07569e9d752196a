// The table of contents of [BB26]: its statements in the order of the page.
#include "esscher/paper/papers.h"
#include "esscher/paper/statements.h"

namespace esscher::paper {

Paper large_prompts() {
  return {
      .id = "large-prompts",
      .about = "Boursier and Boyer, Softmax as Linear Attention in the Large-Prompt Regime",
      .title = "Softmax attention in the large-prompt regime, checked",
      .lead =
          "What Boursier and Boyer prove about softmax attention on long prompts (arXiv "
          "2512.11784), measured. Attention over a prompt is an operator on the law of its tokens; "
          "a prompt of L tokens is a sample of that law. When L grows, softmax attention tends to "
          "a limit operator, which for Gaussian tokens is linear. Each section states one result "
          "in our words, checks its hypotheses with numbers, and gives a verdict computed from "
          "what was measured.",
      .statements = {lemma_2_1(), almost_sure(), prop_3_1(), prop_3_4(), stability(), theorem_4_3(),
                     theorem_5_1(), transfer(), experiment()}};
}

}  // namespace esscher::paper
