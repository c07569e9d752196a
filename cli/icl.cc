#include "esscher/config/icl.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/execute.h"
#include "cli/icl_setup.h"
#include "cli/verbs.h"
#include "esscher/base/number_text.h"
#include "esscher/json/training.h"
#include "esscher/report/page_flow.h"
#include "esscher/report/page_twins.h"
#include "esscher/report/report.h"

namespace esscher::cli {
namespace {

std::string show(const Value& value) {
  if (const auto* x = std::get_if<double>(&value)) return std::isfinite(*x) ? brief(*x, 6) : "-";
  if (const auto* n = std::get_if<std::int64_t>(&value)) return std::to_string(*n);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* L = std::get_if<Length>(&value)) return L->text();
  if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "yes" : "no";
  return "-";
}

// Aligned columns of typed rows.
template <HasColumns Row>
std::string show_table(const std::vector<Row>& rows, const std::vector<std::string>& columns) {
  const std::vector<Column> all = columns_of<Row>();
  std::vector<std::vector<std::string>> lines{columns};
  for (const Row& row : rows) {
    const Record record = record_of(row);
    std::vector<std::string> line;
    for (const std::string& name : columns) {
      const auto at = std::ranges::find(all, name, &Column::name) - all.begin();
      line.push_back(show(record.at(static_cast<std::size_t>(at))));
    }
    lines.push_back(std::move(line));
  }
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      std::size_t width = 0;
      for (const auto& other : lines) width = std::max(width, other[c].size());
      text += fmt::format("{:>{}}{}", line[c], width, c + 1 < columns.size() ? "  " : "\n");
    }
  }
  return text;
}

// A line below a table whose rows are marked heavy.
template <class Row>
std::string heavy_note(const std::vector<Row>& rows) {
  if (!std::ranges::any_of(rows, [](const Row& row) { return row.heavy.value_or(false); })) {
    return "";
  }
  return "Rows marked heavy hang on few nodes or draws: their standard errors are too small. More "
         "nodes help (flow.log2_nodes).\n";
}

void warn_alpha(const Globals& globals, double alpha, const AnyTask& task) {
  const double bound = balanced_start_bound(task.regression());
  if (alpha > 0 && alpha >= bound) {
    print_note(globals, fmt::format("warning: alpha = {:.6g} is outside the interval of the "
                                    "theorem, 0 < alpha < {:.6g}\n",
                                    alpha, bound));
  }
}

// The run of --out, if there is one.
std::optional<Run> run_of(const Globals& globals, const char* verb, const Config& config) {
  if (globals.out.empty()) return std::nullopt;
  return open_run(globals.out,
                  {.verb = verb, .config_toml = config.resolved_toml(), .seed = globals.seed});
}

void keep_page(Run& run, const Page& page) {
  set_page(run, page);
  if (run.is_writer()) write_report(run, page, run.directory() / "report.html");
}

}  // namespace

void icl_risk(const Globals& globals, const IclOptions& options) {
  const Config config = icl_config(globals, options);
  const Table root = config.root();
  RiskProblem problem = options.model.empty()
                            ? read_risk_problem(root, globals.seed)
                            : read_risk_problem(root, globals.seed, load_model(options.model));
  if (!options.lengths.empty()) problem.lengths = parse_lengths(options.lengths);
  config.check_all_used();
  const std::vector<RiskRow> rows = risk_rows(problem);
  print_result(
      globals, "icl-risk", risk_document(rows),
      show_table(rows, {"L", "model", "risk", "std_error", "engine", "heavy"}) + heavy_note(rows));
}

void icl_flow(const Globals& globals, const IclOptions& options) {
  Config config = icl_config(globals, options);
  set_length(config, options);
  const FlowProblem problem = read_flow_problem(config.root(), globals.seed);
  config.check_all_used();
  warn_alpha(globals, problem.alpha, problem.setup.task);
  std::optional<Run> run = run_of(globals, "icl flow", config);
  const FlowRecord flow =
      assemble_flow(rows_of_cells(globals, run ? &*run : nullptr, flow_cells(problem)));
  const Json document = flow_document(flow);
  if (run) {
    run->set_document("model", document);
    keep_page(*run, flow_page(flow, rerun(globals, "icl flow", options)));
  }
  print_result(globals, "icl-flow", document,
               show_table(std::vector<FlowRow>{flow.summary},
                          {"model", "L", "status", "t", "risk", "bayes", "gradient_norm",
                           "conserved_drift", "energy_defect", "limit_distance"}));
}

void icl_compare(const Globals& globals, const IclOptions& options) {
  const Config config = icl_config(globals, options);
  CompareProblem problem = read_compare_problem(config.root(), globals.seed);
  if (!options.lengths.empty()) problem.lengths = parse_lengths(options.lengths);
  config.check_all_used();
  warn_alpha(globals, read_flow_problem(config.root(), globals.seed).alpha, problem.setup.task);
  std::optional<Run> run = run_of(globals, "icl compare", config);
  const CompareResult result =
      assemble_twins(rows_of_cells(globals, run ? &*run : nullptr, twin_cells(problem)));
  if (run) keep_page(*run, twins_page(result, rerun(globals, "icl compare", options)));
  std::string text =
      show_table(result.twins, {"model", "L", "status", "limiting_risk", "std_error", "bayes",
                                "excess", "sup_distance", "sup_gradient_gap",
                                "sup_gradient_gap_std_error", "horizon", "heavy"}) +
      heavy_note(result.twins);
  if (!result.lengths.empty()) {
    text += "\n" + show_table(result.lengths,
                              {"model", "eps", "length", "length_low", "length_high", "risk"});
  }
  print_result(globals, "icl-compare", compare_document(result), text);
}

void add_icl(const Command& app, Globals& globals) {
  const Command icl = app.add("icl", "in-context regression: risks, flows, training");
  icl.require_verb();
  icl.footer("'esscher icl risk --help' and so on show examples.");
  // The options live as long as the program, as Globals do.
  static IclOptions options;
  constexpr const char* kOne = "prompt length, e.g. 100 or inf";
  constexpr const char* kSeveral = "prompt lengths, e.g. 10,1e6,inf";
  const auto add = [&](const char* name, const char* text, const char* length, const char* examples,
                       void (*run)(const Globals&, const IclOptions&)) {
    const Command verb = add_verb(icl, globals, name, text, examples);
    verb.option("--preset", options.preset, "a published setting, see 'esscher presets'")
        .type_name("NAME");
    verb.option("--length", options.lengths, length).type_name(length == kOne ? "L" : "L,..");
    verb.run([&globals, run] { run(globals, options); });
    return verb;
  };
  add("risk", "risks of a model at any prompt length, beside Bayes", kSeveral,
      "Examples:\n  esscher icl risk --set task.dim=5 --length 10,1000,inf\n"
      "  esscher icl risk --model RUN --length 1e4 --set task.query_cov=4.0",
      icl_risk)
      .option("--model", options.model, "a run of icl flow or icl train, or its JSON")
      .type_name("RUN");
  add("flow", "gradient flow of the exact risk", kOne,
      "Examples:\n  esscher icl flow --set task.dim=5 --length inf\n"
      "  esscher icl flow --preset zfb-shifts --out RUN",
      icl_flow);
  add("train", "stochastic training on fresh prompts", kOne,
      "Examples:\n  esscher icl train --preset boursier-boyer --length 50 "
      "--out RUN\n"
      "  esscher icl train --set task.dim=5 --set train.optimizer=adam "
      "--length 100",
      icl_train);
  add("compare", "flows at several lengths and at infinity from one start", kSeveral,
      "Example:\n  esscher icl compare --set task.dim=2 --length 10,100,1000 "
      "--set "
      "'sweep.eps=[0.1]'",
      icl_compare);
}

}  // namespace esscher::cli
