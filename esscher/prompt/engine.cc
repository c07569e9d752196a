#include "esscher/prompt/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/base/error.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/measure/score_law.h"
#include "esscher/measure/stationary.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/prompt/group_integrals.h"

namespace esscher {
namespace {

[[noreturn]] void refuse(Engine asked, const std::string& why) {
  throw CapabilityError(std::string(name(asked)) + " engine: " + why + "; use engine = \"direct\"");
}

// Why a group serves direct alone, or nothing.
std::string dependent_tokens(const AnyMeasure& mu) {
  if (!is_dependent(mu)) return "";
  return "the tokens of " + mu.name() +
         " measures depend on each other, and it needs independent ones";
}

// Why score laws do not serve, or nothing.
std::string no_score_law(const Prompt& prompt, bool covariance) {
  for (const PromptGroup& group : prompt.groups) {
    if (is_dependent(group.mu)) return dependent_tokens(group.mu);
    if (!has_score_law(group.mu)) return group.mu.name() + " tokens have no score law";
  }
  if (covariance) {
    return "gradients in U, K and Q are exact for plain Gaussian tokens and mixtures only, output "
           "and grad_v for this prompt too";
  }
  if (prompt.bias.kind == BiasKind::alibi && prompt.bias.slope < GroupIntegrals::kMinSlope) {
    return "alibi slopes below " + to_text(GroupIntegrals::kMinSlope) + " have no exact engine";
  }
  const bool far = std::any_of(prompt.groups.begin(), prompt.groups.end(),
                               [](const PromptGroup& g) { return has_long_tails(g.mu); });
  if (far && prompt.bias.kind == BiasKind::alibi) {
    return "alibi and student tokens have no nodes together";
  }
  return "";
}

// Why scores cannot be drawn instead of tokens, or nothing.
std::string no_sampled_scores(const Prompt& prompt, bool covariance) {
  for (const PromptGroup& group : prompt.groups) {
    if (is_dependent(group.mu)) return dependent_tokens(group.mu);
    if (!gaussian_mixture_law(group.mu)) {
      return "tokens must be Gaussian or a Gaussian mixture, not " + group.mu.name();
    }
  }
  if (prompt.is_plain()) return "";
  if (covariance) return "gradients in U, K and Q are sampled for plain prompts only";
  if (prompt.bias.kind == BiasKind::alibi) return "alibi weighs every token differently";
  return "";
}

std::string what_tokens(const Prompt& prompt) {
  if (prompt.is_plain()) return "tokens are " + prompt.groups.front().mu.name();
  const auto count = [](std::int64_t n, const std::string& what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  return "the prompt has " + count(static_cast<std::int64_t>(prompt.groups.size()), "group") +
         " and " + count(prompt.given.rows() + (prompt.include_query ? 1 : 0), "given token");
}

// Whether the nodes of every group reach these queries.
bool nodes_reach(const Prompt& prompt, const Attention& attention, const MatrixView& queries) {
  for (Index q = 0; q < queries.rows(); ++q) {
    const Vector a = attention.tilt(queries.row(q).transpose());
    if (!a.allFinite()) return false;
    for (const PromptGroup& group : prompt.groups) {
      if (!has_score_law(group.mu, a)) return false;
    }
  }
  return true;
}

// Everything but plain Gaussian tokens and mixtures. reaches() is asked for automatic only.
template <class Reaches>
EngineChoice choose_by_nodes(Engine asked, const Prompt& prompt, bool covariance,
                             const Reaches& reaches) {
  const std::string what = what_tokens(prompt);
  const std::string no_exact = no_score_law(prompt, covariance);
  const std::string no_sampled = no_sampled_scores(prompt, covariance);
  if (asked == Engine::exact && !no_exact.empty()) refuse(asked, no_exact);
  if (asked == Engine::sampled && !no_sampled.empty()) refuse(asked, no_sampled);
  if (asked == Engine::exact) return {asked, what + ": exact, no token is sampled"};
  EngineChoice sampled{Engine::sampled, what + ": scores are sampled (exact in law)"};
  if (asked == Engine::sampled) return sampled;
  if (asked == Engine::direct) return {asked, what + ": tokens are drawn"};
  const bool served = no_exact.empty() && reaches();
  if (served) return {Engine::exact, what + ": exact, no token is sampled"};
  const std::string why =
      ", because " + (no_exact.empty() ? "scores reach too far for exact nodes" : no_exact);
  if (no_sampled.empty()) return {sampled.engine, sampled.reason + why};
  return {Engine::direct, what + ": tokens are drawn" + why};
}

void refuse_quadrature(Engine asked) {
  if (asked != Engine::quadrature) return;
  throw CapabilityError(
      "quadrature engine: the errors of attention have none; use engine = \"exact\"");
}

}  // namespace

double largest_tau(const AnyMeasure& mu, const Attention& attention, const MatrixView& queries) {
  const auto law = gaussian_mixture_law(mu);
  if (!law) return 0;
  double largest = 0;
  for (Index q = 0; q < queries.rows(); ++q) {
    const Vector a = attention.tilt(queries.row(q).transpose());
    if (!a.allFinite()) return std::numeric_limits<double>::infinity();
    for (const GaussianLaw& part : law->components) {
      largest = std::max(largest, score_tau(part, a));
    }
  }
  return largest;
}

EngineChoice choose_engine(Engine asked, const AnyMeasure& mu, double largest_tau,
                           bool covariance) {
  refuse_quadrature(asked);
  const auto law = gaussian_mixture_law(mu);
  if (!law) {
    return choose_by_nodes(asked, Prompt::plain(mu), covariance, [] { return true; });
  }
  const std::string what = "tokens are " + mu.name();
  if (asked == Engine::direct) return {Engine::direct, what + ": tokens are drawn"};
  EngineChoice sampled{Engine::sampled, what + ": scores are sampled (exact in law)"};
  if (asked == Engine::sampled) return sampled;
  const double reach = law->components.size() > 1 ? kMaxMixtureTau : kMaxTau;
  if (largest_tau <= reach) return {Engine::exact, what + ": exact, no token is sampled"};
  if (asked == Engine::exact) {
    throw CapabilityError(
        "exact engine: scores have standard deviation tau = " + to_text(largest_tau) +
        " and it reaches tau = " + to_text(reach) + "; the sampled engine can serve them");
  }
  sampled.reason += ", because scores beyond tau = " + to_text(reach) + " have no exact engine";
  return sampled;
}

EngineChoice choose_engine(Engine asked, const Prompt& prompt, const Attention& attention,
                           const MatrixView& queries, bool covariance) {
  refuse_quadrature(asked);
  const bool automatic = asked == Engine::automatic;
  if (prompt.is_plain() && gaussian_mixture_law(prompt.groups.front().mu)) {
    const AnyMeasure& mu = prompt.groups.front().mu;
    return choose_engine(asked, mu, automatic ? largest_tau(mu, attention, queries) : 0);
  }
  return choose_by_nodes(asked, prompt, covariance,
                         [&] { return nodes_reach(prompt, attention, queries); });
}

}  // namespace esscher
