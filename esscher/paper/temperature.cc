// The table of contents of `esscher paper --which temperature`.
#include "esscher/paper/temperature.h"

#include "esscher/paper/papers.h"

namespace esscher::paper {

Paper temperature() {
  return {
      .id = "temperature",
      .about = "What the scale of the scores does to long prompts: phases of the weights",
      .title = "The temperature of long prompts, checked",
      .lead =
          "Models of long context multiply their scores by a factor that grows with the prompt. "
          "What such a factor does to the softmax weights is one integral, which is evaluated "
          "here at lengths up to 1e250, far beyond where formulas for long prompts are "
          "usually trusted. Each section states one result, checks it two-sided against "
          "closed forms, simulated prompts or independent values, and runs controls that must "
          "fail.",
      .statements = {weight_regimes(), golden_ratio(), best_temperature()}};
}

}  // namespace esscher::paper
