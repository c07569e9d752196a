#include "cli/moments.h"

#include <fmt/format.h>

#include "cli/execute.h"
#include "esscher/base/error.h"
#include "esscher/concentration/output_moments.h"
#include "esscher/config/presets.h"
#include "esscher/config/sweep.h"
#include "esscher/json/rows.h"

namespace esscher::cli {
namespace {

// Every token is a query of the whole prompt, so the defaults are shorter than those of averages.
MomentOptions read_options(const Table& root, std::uint64_t seed) {
  const StudyOptions sweep = read_sweep(root, seed);
  const Table table = root.table_or_empty("sweep");
  MomentOptions out{.lengths = {250, 500, 1000, 2000}, .seed = seed};
  if (table.has("lengths")) out.lengths = sweep.lengths;
  if (table.has("replicates")) out.replicates = sweep.replicates;
  return out;
}

std::string table_text(const MomentResult& result, const MomentOptions& options) {
  std::string out = fmt::format(
      "Self-attention of {} drawn prompts at each length: distance of the mean and of the "
      "covariance "
      "of the\noutputs from those of the limit. The horizon |G^1/2 U G^1/2| is {:.4g}.\n\n"
      "{:>12}  {:<10}  {:>11}  {:>11}\n",
      options.replicates, result.horizon, "L", "moment", "value", "std. error");
  for (const MomentRow& row : result.rows) {
    out += fmt::format("{:>12}  {:<10}  {:>11.5g}  {:>11.3g}\n", row.L, name(row.moment), row.value,
                       row.std_error);
  }
  for (const MomentFit& fit : result.fits) {
    out += fmt::format("{}: L^{:.3f}, 95 % [{:.3f}, {:.3f}]\n", name(fit.moment), fit.slope,
                       fit.ci.lo, fit.ci.hi);
  }
  return out;
}

}  // namespace

void execute_moments(const Globals& globals, const Config& config) {
  const Table root = config.root();
  if (!globals.out.empty()) throw ConfigError("--metric moments makes no run; leave --out away");
  const Problem problem = read_problem(root);
  const MomentOptions options = read_options(root, globals.seed);
  allow_preset(root);
  config.check_all_used();
  const MomentResult result = moment_result(
      problem, options, rows_of_cells(globals, nullptr, moment_cells(problem, options)));
  const Json document{
      {"metric", "moments"}, {"horizon", result.horizon},      {"prompts", options.replicates},
      {"engine", "direct"},  {"rows", rows_json(result.rows)}, {"fits", rows_json(result.fits)},
      {"seed", options.seed}};
  print_result(globals, "concentration", document, table_text(result, options));
}

}  // namespace esscher::cli
