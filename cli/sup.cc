#include "cli/sup.h"

#include <fmt/format.h>

#include "cli/execute.h"
#include "esscher/base/error.h"
#include "esscher/concentration/sup_error.h"
#include "esscher/config/measure.h"
#include "esscher/config/presets.h"
#include "esscher/config/sweep.h"
#include "esscher/json/rows.h"

namespace esscher::cli {
namespace {

// Every token is drawn and every prompt searched, so the defaults are shorter than those of averages.
SupOptions read_options(const Table& root, std::uint64_t seed, double radius) {
  const StudyOptions sweep = read_sweep(root, seed);
  const Table table = root.table_or_empty("sweep");
  if (sweep.engine != Engine::automatic && sweep.engine != Engine::direct) {
    table.fail("engine", "\"direct\" or \"auto\": the sup metric draws every token");
  }
  SupOptions out{.radius = radius, .lengths = {10, 32, 100, 316, 1000}, .seed = seed};
  if (table.has("lengths")) out.lengths = sweep.lengths;
  if (table.has("replicates")) out.replicates = sweep.replicates;
  if (table.has("metrics")) table.fail("metrics", "no key: --metric sup is the metric");
  return out;
}

std::string table_text(const std::vector<SupRow>& rows, const SupOptions& options) {
  std::string out = fmt::format(
      "E sup |T_hat(z) - T(z)| over |z| <= {:.6g}: {} prompts are drawn (direct engine). value is "
      "attained;\nthe supremum lies between value and value + resolution, certified by a Lipschitz "
      "bound.\n\n{:>14}  {:>11}  {:>11}  {:>24}  {:>11}  {:>9}\n",
      options.radius, options.replicates, "L", "value", "std. error", "95 % interval", "resolution",
      "queries");
  for (const SupRow& row : rows) {
    out +=
        fmt::format("{:>14}  {:>11.5g}  {:>11.3g}  {:>24}  {:>11.3g}  {:>9.0f}\n", row.L, row.value,
                    row.std_error, fmt::format("[{:.5g}, {:.5g}]", row.ci.lo, row.ci.hi),
                    row.resolution, row.points);
  }
  return out;
}

}  // namespace

void execute_sup(const Globals& globals, const Config& config, double radius) {
  const Table root = config.root();
  if (!(radius > 0)) throw ConfigError("--metric sup needs --radius R, the radius of the ball");
  if (!globals.out.empty()) throw ConfigError("--metric sup makes no run; leave --out away");
  if (root.has("query")) {
    throw ConfigError("--metric sup takes all queries with |z| <= --radius; leave [query] away");
  }
  const AnyMeasure mu = read_measure(root.table("measure"));
  const Problem problem{.mu = mu, .attention = read_attention(root, mu.dim())};
  const SupOptions options = read_options(root, globals.seed, radius);
  allow_preset(root);
  config.check_all_used();
  const std::vector<SupRow> rows =
      sup_rows(rows_of_cells(globals, nullptr, sup_cells(problem, options)), options);
  const Json document{
      {"metric", "sup"},    {"radius", options.radius}, {"prompts", options.replicates},
      {"engine", "direct"}, {"rows", rows_json(rows)},  {"seed", options.seed}};
  print_result(globals, "concentration", document, table_text(rows, options));
}

}  // namespace esscher::cli
