// icl risk --temperature: risks of a model over temperatures, and what cooling or heating buys.
#include <fmt/format.h>

#include <algorithm>

#include "cli/dry_run.h"
#include "cli/execute.h"
#include "cli/icl_setup.h"
#include "cli/text_table.h"
#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/json/temperature.h"
#include "esscher/report/page_temperature.h"
#include "esscher/report/report.h"
#include "esscher/report/setting.h"

namespace esscher::cli {
namespace {

// 2^-2 to 2^2 where only shifts are asked for.
const std::vector<double> kFactors = {4, 2, 1.4142135623730951, 1, 0.7071067811865475, 0.5, 0.25};

std::vector<double> factors_of(const IclOptions& options) {
  std::vector<double> out = options.factors;
  for (const double T : options.temperatures) {
    if (!(T > 0 && std::isfinite(T))) {
      throw_argument("icl risk", "--temperature", to_text(T), "numbers > 0, e.g. 0.5,1,2");
    }
    out.push_back(1 / T);
  }
  return out.empty() ? kFactors : out;
}

TemperatureProblem problem_of(const IclOptions& options, const RiskProblem& risk) {
  TemperatureProblem out{.task = risk.task,
                         .heads = risk.heads,
                         .lengths = risk.lengths,
                         .scheduled = risk.factors,
                         .factors = factors_of(options),
                         .risk = risk.risk};
  for (const std::string& text : options.shifts) out.shifts.push_back(parse_shift(text));
  return out;
}

std::string with_error(const std::optional<double>& value, const std::optional<double>& error) {
  if (!value) return "-";
  return *error > 0 ? brief_with_error(*value, *error) : brief(*value);
}

// The risks of one shift, lengths down and temperatures across.
std::string matrix_text(const std::vector<TemperatureRow>& rows) {
  std::vector<TextColumn> columns{{"L", "", {}}};
  std::vector<std::vector<std::string>> lines;
  std::string length;
  for (const TemperatureRow& row : rows) {
    if (row.what == TemperatureRowKind::best) continue;
    if (row.L.text() != length) lines.push_back({length = row.L.text()});
    if (lines.size() == 1) {
      const double relative = row.scheduled * *row.temperature;
      columns.push_back({"T = " + brief(relative), "", {}});
    }
    lines.back().push_back(brief(*row.risk, 5));
  }
  TextTable table(std::move(columns));
  for (const auto& line : lines) table.add(line);
  return table.text();
}

std::string best_text(const std::vector<TemperatureRow>& rows, bool scheduled) {
  std::vector<TextColumn> columns{{"L", "", {}},
                                  {"best T", "the temperature with the smallest risk", {}},
                                  {"factor", "one over it: what scores are multiplied by", {}},
                                  {"at inf", "the best factor of an infinite prompt", {}},
                                  {"risk", "half the mean squared error at the best T", {}},
                                  {"before", "the same as the model is", {}},
                                  {"gain", "how much the best T saves", {}}};
  if (scheduled) columns.push_back({"in force", "the factor of the schedule", {}});
  TextTable table(std::move(columns));
  for (const TemperatureRow& row : rows) {
    if (row.what != TemperatureRowKind::best) continue;
    std::vector<std::string> cells{row.L.text(),
                                   row.temperature ? brief(*row.temperature) : "none",
                                   with_error(row.factor, row.factor_std_error),
                                   row.limit_factor ? brief(*row.limit_factor) : "none",
                                   with_error(row.risk, row.std_error),
                                   brief(*row.risk_before),
                                   with_error(row.gain, row.gain_std_error)};
    if (scheduled) cells.push_back(brief(row.scheduled));
    table.add(cells);
  }
  return table.text() + "\n" + explained({table});
}

std::string text_of(const std::vector<TemperatureRow>& rows, bool scheduled) {
  std::string out, shift;
  std::vector<TemperatureRow> part;
  const auto write = [&] {
    if (part.empty()) return;
    out += fmt::format("task shift: {}\nrisk\n{}\n{}\n", shift, matrix_text(part),
                       best_text(part, scheduled));
    part.clear();
  };
  for (const TemperatureRow& row : rows) {
    if (row.shift != shift) write();
    shift = row.shift;
    part.push_back(row);
  }
  write();
  if (std::ranges::any_of(rows, [](const auto& row) { return row.heavy.value_or(false); })) {
    out +=
        "Some risks hang on few nodes or draws: their standard errors are too small. More nodes "
        "help (flow.log2_nodes).\n";
  }
  return out;
}

}  // namespace

void icl_temperature(const Globals& globals, const IclOptions& options, const Config& config,
                     const RiskProblem& risk) {
  const TemperatureProblem problem = problem_of(options, risk);
  const Cells<TemperatureRow> cells = temperature_cells(problem);
  if (globals.dry_run) {
    return print_dry_run(globals, {.verb = "icl risk",
                                   .what = fmt::format("risks at {} temperatures, and the best one",
                                                       problem.factors.size()),
                                   .engine = "the exact risk of one head",
                                   .count = static_cast<std::int64_t>(cells.keys.size()),
                                   .cpu_seconds = cells_seconds(cells),
                                   .basis = "measured on one cell"});
  }
  std::optional<Run> run;
  if (!globals.out.empty()) {
    std::string text = config.resolved_toml() + "\n[temperature]\nfactors = [";
    for (const double f : problem.factors) text += to_text(f) + ", ";
    text += "]\nshifts = [";
    for (const TaskShift& shift : problem.shifts) text += "\"" + shift.text() + "\", ";
    text += fmt::format("]\nmodel = \"{}\"\n", options.models.empty() ? "" : options.models[0]);
    run = open_run(globals.out, {.verb = "icl risk", .config_toml = text, .seed = globals.seed});
  }
  const std::vector<TemperatureRow> rows = rows_of_cells(globals, run ? &*run : nullptr, cells);
  const Json document = temperature_document(rows);
  if (run) {
    run->set_document("result", document);
    const Page page = with_setting(setting_of(AnyTask(problem.task)), temperature_page(rows));
    keep_page(*run, page);
  }
  print_result(globals, "icl-risk", document, text_of(rows, !problem.scheduled.empty()));
}

}  // namespace esscher::cli
