#include <fmt/format.h>

#include "cli/icl_setup.h"
#include "cli/verbs.h"
#include "esscher/report/icl_report.h"

namespace esscher::cli {
namespace {

std::string show(const Json& value) {
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : dump(value);
}

// Aligned columns of rows of a document.
std::string show_table(const Json& rows, const std::vector<const char*>& columns) {
  std::vector<std::size_t> width;
  for (const char* column : columns) {
    std::size_t w = std::string_view(column).size();
    for (const Json& row : rows) w = std::max(w, show(row.value(column, Json())).size());
    width.push_back(w);
  }
  std::string text;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    text += fmt::format("{:>{}}{}", columns[c], width[c], c + 1 < columns.size() ? "  " : "\n");
  }
  for (const Json& row : rows) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      text += fmt::format("{:>{}}{}", show(row.value(columns[c], Json())), width[c],
                          c + 1 < columns.size() ? "  " : "\n");
    }
  }
  return text;
}

void warn_alpha(const Globals& globals, double alpha, double bound) {
  if (alpha > 0 && alpha >= bound) {
    print_note(globals, fmt::format("warning: alpha = {:.6g} is outside the interval of the "
                                    "theorem, 0 < alpha < {:.6g}\n",
                                    alpha, bound));
  }
}

}  // namespace

void icl_risk(const Globals& globals, const IclOptions& options) {
  const Config config = icl_config(globals, options);
  const Table root = config.root();
  RiskStudy study;
  study.task = read_task(root);
  const FlowConfig flow = read_flow(root, globals.seed);
  study.risk = flow.risk;
  study.lengths = parse_lengths(options.lengths);
  const std::vector<Length> listed = read_lengths(root, {flow.length});
  if (study.lengths.empty()) study.lengths = listed;
  (void)read_eps(root);
  if (options.model.empty()) {
    const ModelConfig model = read_model(root, study.task);
    check_one_head(model);
    study.heads = {model.space.readout(model.theta0)};
  } else {
    study.heads = load_model(options.model);
  }
  skip_preset(root);
  config.check_all_used();
  const Json document = risk_document(study);
  print_result(globals, "icl-risk", document,
               show_table(document["rows"], {"L", "model", "risk", "std_error", "engine"}));
}

void icl_flow(const Globals& globals, const IclOptions& options) {
  Config config = icl_config(globals, options);
  set_length(config, options);
  const FlowStudy study = read_flow_study(config.root(), globals.seed);
  (void)read_lengths(config.root(), {});
  (void)read_eps(config.root());
  config.check_all_used();
  warn_alpha(globals, study.alpha, balanced_start_bound(study.task));
  const std::vector<Json> rows = run_study(
      globals, "icl flow", config, {"flow"}, [&](std::size_t) { return flow_rows(study); },
      flow_document,
      [&](const std::vector<Json>& r) {
        return flow_report(r, rerun(globals, "icl flow", options));
      });
  const Json document = flow_document(rows);
  const Json summary = Json::array({document});
  print_result(globals, "icl-flow", document,
               show_table(summary, {"model", "L", "status", "t", "risk", "bayes", "gradient_norm",
                                    "conserved_drift", "energy_defect", "limit_distance"}));
}

void icl_compare(const Globals& globals, const IclOptions& options) {
  const Config config = icl_config(globals, options);
  const Table root = config.root();
  CompareStudy study = read_compare_study(root, globals.seed);
  if (!options.lengths.empty()) study.lengths = parse_lengths(options.lengths);
  config.check_all_used();
  const FlowStudy flow = read_flow_study(root, globals.seed);
  warn_alpha(globals, flow.alpha, balanced_start_bound(flow.task));
  const std::vector<Json> rows = run_study(
      globals, "icl compare", config, compare_keys(study),
      [&](std::size_t i) { return compare_rows(study, i); }, nullptr,
      [&](const std::vector<Json>& r) {
        return compare_report(r, rerun(globals, "icl compare", options));
      });
  const Json document = compare_document(rows);
  std::string text =
      show_table(document["rows"], {"model", "L", "status", "limiting_risk", "std_error", "bayes",
                                    "excess", "sup_distance", "sup_gradient_gap", "horizon"});
  if (!document["lengths"].empty()) {
    text += "\n" + show_table(document["lengths"], {"model", "eps", "length", "risk"});
  }
  print_result(globals, "icl-compare", document, text);
}

void add_icl(CLI::App& app, Globals& globals) {
  CLI::App* icl = app.add_subcommand("icl", "in-context regression: risks, flows, training");
  icl->require_subcommand(1);
  icl->footer("'esscher icl risk --help' and so on show examples.");
  // The options live as long as the program, as Globals do.
  static IclOptions options;
  const auto add = [&](const char* name, const char* text, const char* examples,
                       void (*run)(const Globals&, const IclOptions&)) {
    CLI::App* verb = add_verb(*icl, globals, name, text, examples);
    verb->add_option("--preset", options.preset, "a published setting, see 'esscher presets'")
        ->type_name("NAME");
    verb->add_option("--length", options.lengths, "prompt lengths, e.g. 10,1e6,inf")
        ->type_name("L,..");
    verb->callback([&globals, run] { run(globals, options); });
    return verb;
  };
  add("risk", "exact risks of a model at any prompt length, beside Bayes",
      "Examples:\n  esscher icl risk --set task.dim=5 --length 10,1000,inf\n"
      "  esscher icl risk --model RUN --length 1e4 --set task.query_cov=4.0",
      icl_risk)
      ->add_option("--model", options.model, "a run of icl flow or icl train, or its JSON")
      ->type_name("RUN");
  add("flow", "gradient flow of the exact risk",
      "Examples:\n  esscher icl flow --set task.dim=5 --length inf\n"
      "  esscher icl flow --preset zfb-shifts --out RUN",
      icl_flow);
  add("train", "stochastic training on fresh prompts",
      "Examples:\n  esscher icl train --preset boursier-boyer --length 50 "
      "--out RUN\n"
      "  esscher icl train --set task.dim=5 --set train.optimizer=adam "
      "--length 100",
      icl_train);
  add("compare", "flows at several lengths and at infinity from one start",
      "Example:\n  esscher icl compare --set task.dim=2 --length 10,100,1000 "
      "--set "
      "'sweep.eps=[0.1]'",
      icl_compare);
}

}  // namespace esscher::cli
