#include "cli/attend_head.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
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
    if (head.name != name) continue;
    if (!head.rules.none()) {
      throw CapabilityError("attend: head " + name +
                            " has a mask, a sliding window, a softcap or a sink logit, expected a "
                            "head without; `esscher heads` reads it");
    }
    return std::move(head);
  }
  throw FileError(reference.substr(0, cut) + ": no head named \"" + name + "\"");
}

// One query of the head, its softmax output next to that of the surrogate.
struct HeadQueryRow {
  Index query = 0;
  Index n = 0;    // keys in its prompt
  Vector output;  // [dv]
  Vector limit;   // [dv]
  double effective_sample_size = 0;
  double error = 0;  // |output - limit|
  double lin = 0;    // error / |output|
};

HeadQueryRow query_of(const Head& head, const Matrix& keys, const Matrix& values,
                      const NamedSurrogate& named, Index query) {
  const Index n = head.prompt_end(query);
  const Vector a = named.scale * head.Q(query, 1).row(0);
  const Empirical prompt(Matrix(keys.topRows(n)));
  HeadQueryRow row{.query = query, .n = n, .output = {}, .limit = named.surrogate(a)};
  row.output = values.topRows(n).transpose() * prompt.tilted_weights(a);
  row.effective_sample_size = prompt.effective_sample_size(a);
  row.error = (row.output - row.limit).norm();
  row.lin = row.error / row.output.norm();
  return row;
}

Json query_json(const HeadQueryRow& row) {
  Json out{{"query", row.query},
           {"n", row.n},
           {"output", json_vector(row.output)},
           {"limit", {{"output", json_vector(row.limit)}}}};
  put(out, "effective_sample_size", row.effective_sample_size);
  put(out, "error", row.error);
  put(out, "lin", row.lin);
  return out;
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
    const HeadQueryRow row = query_of(head, keys, values, named, query);
    relative.push_back(row.lin);
    rows.push_back(query_json(row));
  }
  const double lin = median(relative);
  Json document{{"head", head.name},
                {"engine", "direct"},
                {"components", options.components},
                {"rows", std::move(rows)},
                {"limit", {{"measure", "surrogate"}, {"origin", options.surrogate}}}};
  put(document, "error", lin);
  print_result(globals, "attend", document,
               fmt::format("{}: {} queries, median |T - surrogate| / |T| = {}\n", head.name,
                           relative.size(), brief(lin)));
}

}  // namespace esscher::cli
