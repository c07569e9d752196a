#include "cli/attend_head.h"

#include <fmt/format.h>

#include <vector>

#include "esscher/base/error.h"
#include "esscher/estimate/quantile.h"
#include "esscher/heads/load.h"
#include "esscher/heads/surrogate_file.h"
#include "esscher/measure/empirical.h"

namespace esscher::cli {
namespace {

Head find_head(const std::string& reference) {
  const std::size_t cut = reference.rfind('#');
  if (cut == std::string::npos) {
    throw_argument("attend", "--head", "\"" + reference + "\"", "FILE#NAME");
  }
  const std::string name = reference.substr(cut + 1);
  for (Head& head : load_heads(reference.substr(0, cut))) {
    if (head.name == name) return std::move(head);
  }
  throw FileError(reference.substr(0, cut) + ": no head named \"" + name + "\"");
}

}  // namespace

void attend_head(const Globals& globals, const AttendHeadOptions& options) {
  const Head head = find_head(options.head);
  const NamedSurrogate named =
      read_surrogate(options.surrogate, head.name, static_cast<Index>(options.components));
  check_dimension("surrogate of " + head.name, "keys", named.surrogate.mean_k.cols(), head.dk);
  check_dimension("surrogate of " + head.name, "values", named.surrogate.mean_v.cols(), head.dv);
  const Matrix keys = head.K(0, head.n);
  const Matrix values = head.V(0, head.n);
  Json rows = Json::array();
  std::vector<double> relative;
  for (const Index query : default_queries(head, static_cast<Index>(options.queries))) {
    const Index n = head.prompt_end(query);
    const Vector a = named.scale * head.Q(query, 1).row(0);
    const Empirical prompt(Matrix(keys.topRows(n)));
    const Vector T = values.topRows(n).transpose() * prompt.tilted_weights(a);
    const Vector limit = named.surrogate(a);
    const double error = (T - limit).norm();
    relative.push_back(error / T.norm());
    rows.push_back({{"query", query},
                    {"n", n},
                    {"output", json_vector(T)},
                    {"limit", {{"output", json_vector(limit)}}},
                    {"effective_sample_size", number(prompt.effective_sample_size(a))},
                    {"error", number(error)},
                    {"lin", number(relative.back())}});
  }
  const double lin = median(relative);
  const Json document{{"head", head.name},
                      {"engine", "direct"},
                      {"components", options.components},
                      {"rows", rows},
                      {"limit", {{"measure", "surrogate"}, {"origin", options.surrogate}}},
                      {"error", number(lin)}};
  print_result(globals, "attend", document,
               fmt::format("{}: {} queries, median |T - surrogate| / |T| = {:.4g}\n", head.name,
                           rows.size(), lin));
}

}  // namespace esscher::cli
