#include "cli/scaling_tokens.h"

#include <fmt/format.h>

#include <optional>

#include "cli/dry_run.h"
#include "cli/execute.h"
#include "cli/verbs.h"
#include "esscher/base/number_text.h"
#include "esscher/config/presets.h"
#include "esscher/config/tokens.h"
#include "esscher/json/rows.h"
#include "esscher/report/page_tokens.h"
#include "esscher/report/report.h"

namespace esscher::cli {
namespace {

std::string equiangular_text(const std::vector<EquiangularRow>& rows) {
  constexpr auto kLine = "{:>8}  {:>8}  {:>11}  {:>13}  {:>9}  {:>15}  {:>9}\n";
  std::string out = fmt::format(kLine, "L", "gamma", "self weight", "inner product", "limit",
                                "boundary gamma", "its limit");
  for (const EquiangularRow& r : rows) {
    out += fmt::format(kLine, brief(r.L), brief(r.gamma), brief(r.self_weight),
                       brief(r.inner_product, 5), brief(r.predicted_inner_product),
                       brief(r.boundary, 5), brief(r.predicted_boundary));
  }
  return out +
         "\nTokens with inner products rho, scores gamma log L times inner products. A token "
         "weighs "
         "1/2 on itself at\nthe boundary; the inner product is that of two new tokens of unit "
         "length.\n";
}

std::string sphere_text(const std::vector<SphereRow>& rows) {
  constexpr auto kLine = "{:>8}  {:>8}  {:>11}  {:>10}  {:>10}  {:>10}\n";
  std::string out = fmt::format(kLine, "L", "kappa", "beta", "E H", "limit", "ESS");
  for (const SphereRow& r : rows) {
    out += fmt::format(kLine, brief(r.L), brief(r.kappa), brief(r.beta), brief(r.H, 5),
                       brief(r.predicted_H, 5), brief(r.ess));
  }
  return out +
         "\nUniform tokens on the unit sphere, scores beta <x,y>. kappa tokens are expected within "
         "a gap of 1 below the\nlargest possible score; E H is the mean of sum omega^2.\n";
}

// Rows of one kind, with their run, its page and the document.
template <class Row>
void run_tokens(const Globals& globals, const Config& config, const PublishedTokens& tokens,
                const Cells<Row>& cells, Page (*page_of)(const std::vector<Row>&),
                std::string (*text_of)(const std::vector<Row>&)) {
  std::optional<Run> run;
  if (!globals.out.empty()) {
    run = open_run(globals.out, {.verb = "scaling", .config_toml = config.resolved_toml()});
  }
  const std::vector<Row> rows = rows_of_cells(globals, run ? &*run : nullptr, cells);
  const Json document{{"tokens", name(tokens.kind)}, {"rows", rows_json(rows)}};
  if (run) {
    run->set_document("result", document);
    const Page page = page_of(rows);
    set_page(*run, page);
    if (run->is_writer()) write_report(*run, page, run->directory() / "report.html");
  }
  print_result(globals, "scaling", document, text_of(rows));
}

}  // namespace

void run_published_tokens(const Globals& globals, const Config& config) {
  const PublishedTokens tokens = read_published_tokens(config.root());
  allow_preset(config.root());
  config.check_all_used();
  if (globals.dry_run) {
    const auto plan = [&](const auto& cells) {
      print_dry_run(globals, {.verb = "scaling",
                              .what = fmt::format("the limits of {} tokens", name(tokens.kind)),
                              .engine = "formulas and one integral per row",
                              .count = static_cast<std::int64_t>(cells.keys.size()),
                              .cpu_seconds = cells_seconds(cells),
                              .basis = "measured on one cell"});
    };
    return tokens.kind == TokenKind::equiangular ? plan(equiangular_cells(tokens))
                                                 : plan(sphere_cells(tokens));
  }
  if (tokens.kind == TokenKind::equiangular) {
    run_tokens(globals, config, tokens, equiangular_cells(tokens), &equiangular_page,
               &equiangular_text);
  } else {
    run_tokens(globals, config, tokens, sphere_cells(tokens), &sphere_page, &sphere_text);
  }
}

}  // namespace esscher::cli
