#include "esscher/concentration/detail/plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/random/sobol.h"

namespace esscher {
namespace {

QuerySet plain_queries(const Problem& problem, const PlanOptions& o) {
  return problem.nu ? drawn_queries(*problem.nu, o.queries, o.seed) : given_queries(problem.points);
}

// Queries for the exact engine, whose errors have no noise of their own.
QuerySet exact_queries(const Problem& problem, const PlanOptions& o,
                       const std::optional<GaussianLaw>& nu) {
  if (!nu || o.equal_queries || problem.mu.dim() > kMaxSobolDims) return plain_queries(problem, o);
  const Matrix form = score_form(problem.mu, problem.attention);
  if (!form.allFinite()) return plain_queries(problem, o);
  return sobol_queries(*nu, form, o.queries, Stream(o.seed).split(kQueryStream));
}

// Closed averages, frozen fractions and the like are about iid Gaussian tokens.
std::optional<GaussianLaw> gaussian_tokens(const Problem& problem) {
  if (!problem.is_plain()) return std::nullopt;
  return gaussian_law(problem.mu);
}

}  // namespace

Problem prompt_problem(Prompt prompt, Attention attention) {
  check_prompt("prompt", prompt);
  if (prompt.groups.empty()) {
    throw_argument("prompt", "groups", "none", "at least one group: nothing is random here");
  }
  AnyMeasure mu = limit_measure(prompt).value_or(prompt.groups.front().mu);
  return {.mu = std::move(mu), .attention = std::move(attention), .prompt = std::move(prompt)};
}

QueryPlan plan_queries(const Problem& problem, const PlanOptions& o) {
  const bool covariance = std::any_of(o.metrics.begin(), o.metrics.end(), reads_covariance);
  const Prompt prompt = problem.tokens();
  const auto choose = [&](const Matrix& queries) {
    return choose_engine(o.engine, prompt, problem.attention, queries, covariance);
  };
  QueryPlan plan{.choice = choose(Matrix(0, problem.mu.dim())), .mu = gaussian_tokens(problem)};
  if (problem.nu) plan.nu = gaussian_law(*problem.nu);
  if (plan.choice.engine == Engine::exact) {
    if (plan.mu && plan.nu && !o.equal_queries) {
      plan.average.emplace(o.metrics, *plan.mu, problem.attention, *plan.nu);
      // Asked for by name, the average itself refuses where sharp queries matter to it.
      if (o.engine == Engine::exact) return plan;
      plan.choice = choose_engine(o.engine, problem.mu, plan.average->largest_tau(o.longest));
    } else {
      plan.queries = exact_queries(problem, o, plan.nu);
      plan.choice = choose(plan.queries.z);
    }
    if (plan.choice.engine == Engine::exact) return plan;
    plan.average.reset();
  }
  plan.queries = plain_queries(problem, o);
  return plan;
}

void check_problem(std::string_view where, const Problem& problem) {
  check_dimension(where, "attention", problem.attention.dim(), problem.mu.dim());
  if (problem.prompt) check_prompt(std::string(where), *problem.prompt);
  if (problem.nu) {
    check_dimension(where, "queries", problem.nu->dim(), problem.mu.dim());
  } else if (problem.points.rows() < 1) {
    throw_argument(where, "queries", "none", "a law of queries or points");
  } else {
    check_dimension(where, "query points", problem.points.cols(), problem.mu.dim());
  }
}

}  // namespace esscher
