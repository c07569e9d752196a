// How a question about all queries is answered: by which engine, and by which queries, if by any.
// Studies and the search for lengths plan the same way.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "esscher/concentration/gaussian_average.h"
#include "esscher/concentration/problem.h"
#include "esscher/concentration/queries.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/engine.h"

namespace esscher {

struct PlanOptions {
  std::vector<Metric> metrics;
  Engine engine = Engine::automatic;
  std::int64_t queries = 0;
  std::uint64_t seed = 0;
  std::int64_t longest = 1;  // the longest prompt that will be asked about
  // Quantiles over queries need queries that are independent and weigh the same.
  bool equal_queries = false;
};

struct QueryPlan {
  EngineChoice choice;
  std::optional<GaussianLaw> mu = {}, nu = {};  // where they are Gaussian
  std::optional<GaussianAverage> average = {};  // exact in tokens and queries
  QuerySet queries = {};                        // empty where `average` answers

  // How an average over these queries was made: quadrature where prompts are exact and queries are
  // drawn or nodes, because their error is left to state.
  [[nodiscard]] Engine made_by() const {
    const bool is_sampled = !average && queries.level != Queries::fixed;
    return choice.engine == Engine::exact && is_sampled ? Engine::quadrature : choice.engine;
  }
};

// Gaussian tokens and queries are averaged in closed form, mixtures of tokens over nets of Gaussian
// queries, everything else over queries drawn or given. The engine is chosen by the largest tau of
// these queries, before any error is computed.
QueryPlan plan_queries(const Problem& problem, const PlanOptions& options);

// Throws DimensionError or ArgumentError, naming `where`, unless the parts of a problem fit.
void check_problem(std::string_view where, const Problem& problem);

}  // namespace esscher
