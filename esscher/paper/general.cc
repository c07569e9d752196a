// The table of contents of `esscher paper --which general`.
#include "esscher/paper/general.h"

#include "esscher/paper/papers.h"

namespace esscher::paper {

Paper general() {
  return {
      .id = "general",
      .about = "Theorem 4.3 on tasks beyond linear regression",
      .title = "Long prompts on tasks beyond linear regression, checked",
      .lead =
          "Theorem 4.3 of Boursier and Boyer (arXiv 2512.11784) speaks of any in-context task with "
          "sub-Gaussian tokens: training with long prompts ends at most ε above training with "
          "infinite ones. Here it is measured on four tasks that are not linear regression with "
          "Gaussian features. A softmax head is trained on infinite prompts; on its way the risk "
          "of finite prompts is compared with that of infinite ones, exactly and without drawing "
          "a token. Each section gives the largest gap, the power of L with which it falls, and "
          "the length from which it is below ε.",
      .statements = {general_single_index(), general_classification(), general_pool(),
                     general_bounded()}};
}

}  // namespace esscher::paper
