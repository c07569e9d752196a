// Finite prompts of Gaussian-mixture tokens without sampling: weights p_k, components N(m_k,G_k).
// Given the component, a token is z = m_k + b_k g + xi with g ~ N(0,1), b_k = G_k a/tau_k, and with
// xi ~ N(0, R_k), R_k = G_k - b_k b_k', independent of the score. The token moments of
// universal/universal.h become sums over components. With zeta = z - m_a, where m_a is the tilted
// mean of the mixture,
//
//   E[T_hat] - T   = L int V F_1[zeta] phi^{L-1} du
//   E|T_hat - T|^2 = L int F_2[|V zeta|^2] phi^{L-1} du + L(L-1) int |V F_1[zeta]|^2 phi^{L-2} du
//
// F_1[zeta] vanishes to first order in the bulk; there it is computed from 1 - e^-y, not by
// subtraction. grad_u, grad_k and grad_q need E|V(Chat - C_a)B'|^2, a sum over set partitions of
// four factors (prompt/exact_mixture_covariance.h). If some tau_k exceeds kMaxMixtureTau, a
// CapabilityError names the sampled engine.
#pragma once

#include <optional>
#include <vector>

#include "esscher/prompt/exact_gaussian.h"
#include "esscher/prompt/exact_mixture_covariance.h"
#include "esscher/prompt/exact_mixture_nodes.h"

namespace esscher {

// The number of nodes of a component grows like tau^2.
inline constexpr double kMaxMixtureTau = 40.0;

// Everything about one query of a mixture, or of one Gaussian, which is a mixture of one and goes
// to the universal functions. Lengths and metrics share its moments, which are kept as they are
// computed, so one object serves one thread.
class MixtureErrors {
 public:
  MixtureErrors(const GaussianMixtureLaw& law, Attention attention, const VectorView& z);

  Vector expected_output(Length L);  // E[T_hat(z)] [dv]; T itself at L = infinity
  // 1 / E[sum omega^2], as for one Gaussian: E[sum omega^2] = L int F_2[1] phi^{L-1} du.
  double effective_sample_size(Length L);
  ErrorParts error_parts(Metric metric, Length L);  // 0 at L = infinity

 private:
  struct Means {
    Vector bias;          // A E[sum omega zeta]
    double square = 0;    // E|A sum omega zeta|^2
    double weights2 = 0;  // E[sum omega^2]
  };
  struct Tokens {
    std::vector<TokenPart> parts;
    MixtureNodes nodes;
  };
  [[nodiscard]] Tokens make_tokens() const;
  Means means(const Matrix& A, std::int64_t L);
  ErrorParts mean_parts(const Matrix& A, std::int64_t L);
  ErrorParts covariance_parts(const Matrix& A, const Matrix& B, std::int64_t L);

  GaussianMixtureLaw law_;
  Attention attention_;
  Vector z_, a_;
  Vector mean_;                   // m_a
  Matrix cov_;                    // C_a
  double log_mgf_ = 0;            // Lambda(a)
  std::optional<Tokens> tokens_;  // centred at m_a; none for one component
};

}  // namespace esscher
