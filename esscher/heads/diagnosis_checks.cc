#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/heads/detail/diagnosis_parts.h"

namespace esscher {

void check_options(const Head& head, const HeadOptions& options) {
  const std::string where = "head " + head.name;
  for (const Index k : options.components) {
    if (k < 2) throw_argument(where, "components", std::to_string(k), "at least 2");
  }
  if (options.most_queries < 1) {
    throw_argument(where, "queries", std::to_string(options.most_queries), "at least 1");
  }
  for (const Index w : options.windows) {
    if (w < std::max<Index>(1, options.sinks)) {
      throw_argument(where, "window", std::to_string(w),
                     "at least 1 and the number of sinks, " + std::to_string(options.sinks));
    }
  }
  for (const Index budget : options.budgets) {
    if (budget < 1) throw_argument(where, "budget", std::to_string(budget), "at least 1");
  }
  if (options.mixture_keys < 1) {
    throw_argument(where, "mixture_keys", std::to_string(options.mixture_keys), "at least 1");
  }
  if (options.sinks < 0) {
    throw_argument(where, "sinks", std::to_string(options.sinks), "at least 0");
  }
  if (options.heavy < 0) {
    throw_argument(where, "heavy", std::to_string(options.heavy), "at least 0");
  }
  if (!(options.tolerance > 0)) {
    throw_argument(where, "tolerance", to_text(options.tolerance), "a positive number");
  }
}

std::vector<Index> checked_queries(const Head& head, const HeadOptions& options) {
  if (options.queries.empty()) {
    const std::vector<Index> queries = default_queries(head, options.most_queries);
    if (queries.empty()) {
      throw_argument("head " + head.name, "mask", "every key of every query hidden",
                     "queries that see a key");
    }
    return queries;
  }
  for (const Index query : options.queries) {
    if (query < 0 || query >= head.n_queries) {
      throw_argument("head " + head.name, "query", std::to_string(query),
                     "an index below " + std::to_string(head.n_queries));
    }
    if (head.rules.bias && !sees_keys(head, query)) {
      throw_argument("head " + head.name, "query", std::to_string(query), "one that sees a key");
    }
  }
  return options.queries;
}

// Finite queries and keys may have scores that are not.
void check_results(const Head& head, const std::vector<PromptResult>& results,
                   const std::vector<Index>& queries) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const PromptResult& r = results[i];
    if (!std::isfinite(r.moments.tau2 * r.moments.tau2) || !std::isfinite(r.moments.value_var) ||
        !std::isfinite(r.norm)) {
      throw_argument("head " + head.name,
                     "size of the scores of query " + std::to_string(queries[i]),
                     "too large for double precision", "scale, Q, K and V of a usable size");
    }
  }
}

}  // namespace esscher
