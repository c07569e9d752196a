#include "esscher/heads/head.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {
namespace {

RowSource rows_of(Matrix values) {
  const auto shared = std::make_shared<const Matrix>(std::move(values));
  return [shared](Index first, Index count) { return Matrix(shared->middleRows(first, count)); };
}

}  // namespace

void check_head(const Head& head) {
  const std::string where = "head " + head.name;
  if (head.n < 1) throw_argument(where, "number of keys", std::to_string(head.n), "at least 1");
  if (head.n_queries < 1) {
    throw_argument(where, "number of queries", std::to_string(head.n_queries), "at least 1");
  }
  if (head.dk < 1 || head.dv < 1) {
    throw_argument(where, "width of K and V",
                   std::to_string(head.dk) + " and " + std::to_string(head.dv), "at least 1");
  }
  if (!std::isfinite(head.scale)) {
    throw_argument(where, "scale", to_text(head.scale), "a finite number");
  }
  if (head.rotary) check_rotary(where, *head.rotary, head.dk);
  if (head.causal && head.n_queries > head.n) {
    throw_argument(where, "number of queries", std::to_string(head.n_queries),
                   "at most the " + std::to_string(head.n) + " keys of a causal head");
  }
  const HeadRules& rules = head.rules;
  if (rules.window < 0 || (rules.window > 0 && !head.causal)) {
    throw_argument(where, "sliding window", std::to_string(rules.window),
                   "a positive number of keys of a causal head");
  }
  if (!(rules.softcap >= 0 && std::isfinite(rules.softcap))) {
    throw_argument(where, "softcap", to_text(rules.softcap), "a positive number, or 0 for none");
  }
  if (rules.sink && !std::isfinite(*rules.sink)) {
    throw_argument(where, "sink logit", to_text(*rules.sink), "a finite number");
  }
}

Head make_head(std::string name, Matrix Q, Matrix K, Matrix V, double scale, bool causal) {
  const std::string where = "head " + name;
  check_dimension(where, "Q (columns)", Q.cols(), K.cols());
  check_dimension(where, "V (rows)", V.rows(), K.rows());
  check_finite(where, "Q", Q);
  check_finite(where, "K", K);
  check_finite(where, "V", V);
  Head head{.name = std::move(name),
            .n = K.rows(),
            .n_queries = Q.rows(),
            .dk = K.cols(),
            .dv = V.cols(),
            .scale = scale,
            .causal = causal,
            .Q = rows_of(std::move(Q)),
            .K = rows_of(std::move(K)),
            .V = rows_of(std::move(V))};
  check_head(head);
  return head;
}

std::vector<Index> default_queries(const Head& head, Index most) {
  const Index first = head.has_whole_text() ? head.n_queries / 2 : 0;
  const Index available = head.n_queries - first;
  const Index count = std::min(available, most);
  std::vector<Index> queries;
  for (Index i = 0; i < count; ++i) {
    const Index query = first + i * available / count;
    if (!head.rules.bias || sees_keys(head, query)) queries.push_back(query);
  }
  return queries;
}

}  // namespace esscher
