// Integrals over u = log t of the Laplace representation for tokens whose scores are a mixture
// sum_k p_k N(mu_k, tau_k^2). At every node u each component has its TokenMoments, with x = g -
// tau. A sweep visits the nodes that matter to prompts of L tokens. Nodes do not depend on L and
// are kept, so that all lengths and metrics of one query share them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "esscher/universal/token_moments.h"

namespace esscher {

struct ScorePart {
  double weight;   // p_k
  double mu, tau;  // its scores are N(mu, tau^2)
};

class MixtureNodes {
 public:
  // log_mgf = log sum_k p_k e^{mu_k + tau_k^2/2}.
  MixtureNodes(std::vector<ScorePart> parts, double log_mgf);

  struct Moments {
    TokenMoments::Table G;
    double excess;  // E[y] - G_10
  };
  // Sums over components, and their moments.
  struct Node {
    double psi = 0;      // sum_k p_k psi_k
    double G2 = 0;       // sum_k p_k E[y^2 e^-y]
    double excess = 0;   // sum_k p_k E[y(1 - e^-y)]
    bool small = false;  // excess < sum_k p_k E[y e^-y]
    std::vector<Moments> moments;
  };

  // Calls add(node, survival, du) at every node of the trapezoidal rule for length L. The
  // integrands may have several peaks, so the rule ends where a monotone bound is negligible
  // against H = E sum omega^2 = L int G_2 phi^{L-1} du. On the left the integrands are below L
  // excess, on the right below (1 - psi)^{L-2}, and they are 0 once every y is large.
  template <class Add>
  void sweep(std::int64_t L, Add add) {
    const long stride = stride_for(L), start = middle(L) / stride * stride;
    const double du = static_cast<double>(stride) * TokenMoments::kStep;
    double H = 0;
    const auto visit = [&](long i) -> const Node& {
      const Node& n = at(i);
      const Survival survival(L, n.psi);
      H += du * survival.power[1] * n.G2;
      add(n, survival, du);
      return n;
    };
    for (long i = start; i <= right_; i += stride) {
      if (finished(L, visit(i).psi)) break;
    }
    for (long i = start - stride; static_cast<double>(L) * visit(i).excess > kNegligible * H;
         i -= stride) {
    }
  }

 private:
  static constexpr double kNegligible = 1e-24;
  static bool finished(std::int64_t L, double psi);
  [[nodiscard]] long stride_for(std::int64_t L) const;
  // A node with L psi of order 1, by bisection, since psi grows from 0 to 1.
  long middle(std::int64_t L);
  const Node& at(long i);

  std::vector<ScorePart> parts_;
  std::vector<TokenMoments> tokens_;
  double log_mgf_;
  double narrowest_ = 0;  // smallest tau
  long right_ = 0;        // every y is large beyond
  std::map<long, Node> nodes_;
};

}  // namespace esscher
