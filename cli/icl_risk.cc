// icl risk: the risks of one model, or of several that were trained at different lengths.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "cli/dry_run.h"
#include "cli/execute.h"
#include "cli/icl_setup.h"
#include "cli/icl_text.h"
#include "esscher/base/error.h"
#include "esscher/config/icl.h"
#include "esscher/config/layer.h"
#include "esscher/json/training.h"
#include "esscher/report/page_risk.h"
#include "esscher/report/setting.h"
#include "esscher/risk/longest_read.h"

namespace esscher::cli {
namespace {

// One cell for each model; references stand in the first.
struct RiskStudy {
  Cells<RiskRow> cells;
  std::string setting;
  std::string config_toml;  // of the first model
  std::size_t lengths = 0;
  std::function<void()> one_length;  // of the first model, for --dry-run
};

Config config_of(const Globals& globals, const IclOptions& options) {
  Config config = icl_config(globals, options);
  set_lengths(config, options);
  return config;
}

std::vector<std::string> keys_of(const IclOptions& options) {
  return options.models.empty() ? std::vector<std::string>{"risk"} : options.models;
}

// Several models are told apart by the lengths they were trained at.
void check_trained(const IclOptions& options, const std::vector<std::optional<Length>>& trained) {
  for (std::size_t i = 0; i < trained.size() && trained.size() > 1; ++i) {
    const auto same = std::find(trained.begin(), trained.end(), trained[i]);
    if (trained[i] && same - trained.begin() == static_cast<std::ptrdiff_t>(i)) continue;
    throw ArgumentError("--model " + options.models[i] +
                        (trained[i] ? ": another model was trained at L = " + trained[i]->text() +
                                          " too, expected one for each length"
                                    : ": it does not say at which length it was trained, expected "
                                      "a run of icl flow or icl train"));
  }
}

std::vector<std::optional<Length>> trained_lengths(const IclOptions& options) {
  std::vector<std::optional<Length>> out;
  for (const std::string& model : options.models) out.push_back(trained_length(model));
  check_trained(options, out);
  return out;
}

RiskStudy regression_study(const Globals& globals, const IclOptions& options,
                           const Config& config) {
  const Table root = config.root();
  std::vector<RiskProblem> problems;
  if (options.models.empty()) problems = {read_risk_problem(root, globals.seed)};
  for (const std::string& model : options.models) {
    problems.push_back(read_risk_problem(root, globals.seed, load_model(model)));
  }
  config.check_all_used();
  const auto trained = trained_lengths(options);
  for (std::size_t i = 0; i < trained.size(); ++i) {
    problems[i].trained = trained[i];
    problems[i].references = i == 0;
  }
  const std::string setting = setting_of(AnyTask(problems[0].task));
  const std::size_t lengths = problems[0].lengths.size();
  RiskProblem one = problems[0];
  one.lengths = {one.lengths.back()};
  if (!one.factors.empty()) one.factors = {one.factors.back()};
  return {{keys_of(options),
           [problems = std::move(problems)](std::size_t i) { return risk_rows(problems[i]); }},
          setting,
          config.resolved_toml(),
          lengths,
          [one = std::move(one)] { (void)risk_rows(one); }};
}

RiskStudy layer_study(const Globals& globals, const IclOptions& options) {
  std::vector<LayerProblem> problems;
  std::string first;
  const auto add = [&](const Config& own) {
    problems.push_back(read_layer_problem(own.root(), globals.seed));
    own.check_all_used();
    if (first.empty()) first = own.resolved_toml();
  };
  if (options.models.empty()) add(config_of(globals, options));
  const auto trained = trained_lengths(options);
  for (std::size_t i = 0; i < trained.size(); ++i) {
    Config own = config_of(globals, options);
    set_layer(own, options.models[i]);
    add(own);
    problems[i].trained = trained[i];
    problems[i].references = i == 0;
  }
  const std::string setting = setting_of(problems[0].task);
  const std::size_t lengths = problems[0].lengths.size();
  LayerProblem one = problems[0];
  one.lengths = {one.lengths.back()};
  return {{keys_of(options), [problems = std::move(problems)](
                                 std::size_t i) { return layer_risk_rows(problems[i]); }},
          setting,
          first,
          lengths,
          [one = std::move(one)] { (void)layer_risk_rows(one); }};
}

DryRun estimate(const RiskStudy& study) {
  const std::size_t models = study.cells.keys.size();
  return {
      .verb = "icl risk",
      .what = fmt::format("the risks of {} model{} at {} length{}", models, models == 1 ? "" : "s",
                          study.lengths, study.lengths == 1 ? "" : "s"),
      .engine = "formulas and quadrature where there are, draws elsewhere; each row names its own",
      .count = static_cast<std::int64_t>(models),
      .cpu_seconds = cpu_seconds(study.one_length) * static_cast<double>(models * study.lengths),
      .basis = "measured at one length"};
}

// The best prediction is that of the first tokens (risk/posterior_risk.h).
bool reads_a_part(const RiskRow& row) {
  if (!row.bayes_by || row.L.is_infinite()) return false;
  return row.L.count() > longest_read(*row.bayes_by);
}

std::string text_of(const std::vector<RiskRow>& rows, const IclOptions& options, bool layers) {
  std::vector<std::string> columns{"L", "model", "risk", "std_error", "engine", "heavy"};
  if (!layers) columns.emplace_back("factor");
  if (options.models.size() > 1) columns.insert(columns.begin(), "trained");
  std::string text = show_table(rows, columns) + heavy_note(rows);
  if (std::ranges::any_of(rows, [](const RiskRow& row) { return row.bound.value_or(false); })) {
    text +=
        "bayes knows the law of the tokens, which a finite prompt does not tell: a lower bound.\n";
  }
  if (std::ranges::any_of(rows,
                          [](const RiskRow& row) { return row.bayes_by == BayesBy::chains; })) {
    text +=
        "bayes is the posterior mean by Markov chains; its error has half the gap between chains\n"
        "that start at the law of the prompt and chains that do not know it.\n";
  }
  if (std::ranges::any_of(rows, reads_a_part)) {
    text += fmt::format(
        "bayes reads the first {} tokens of longer prompts (by a formula {}): its cost lies "
        "between\n"
        "0 and that of these tokens, the middle is shown, and half of the gap is in the error.\n",
        kLongestPosterior, kLongestFormula);
  }
  if (!rows.empty() && rows[0].loss) {
    text += "the risk is " + std::string(mean_of(*rows[0].loss)) + ", not a squared error.\n";
  }
  return text;
}

}  // namespace

void icl_risk(const Globals& globals, const IclOptions& options) {
  const Config config = config_of(globals, options);
  const bool layers = read_task_type(config.root()) != TaskType::regression;
  if (options.asks_temperature()) {
    if (layers) {
      throw ArgumentError(
          "icl risk: --temperature, --factor and --shift are for task.type = \"regression\"");
    }
    if (options.models.size() > 1) {
      throw ArgumentError(
          "icl risk: --temperature, --factor and --shift are for one --model, not " +
          std::to_string(options.models.size()));
    }
    const Table root = config.root();
    const RiskProblem problem =
        options.models.empty()
            ? read_risk_problem(root, globals.seed)
            : read_risk_problem(root, globals.seed, load_model(options.models[0]));
    config.check_all_used();
    return icl_temperature(globals, options, config, problem);
  }
  const RiskStudy study =
      layers ? layer_study(globals, options) : regression_study(globals, options, config);
  if (globals.dry_run) return print_dry_run(globals, estimate(study));
  std::optional<Run> run;
  if (!globals.out.empty()) {
    std::string text = study.config_toml + "\n[tested]\nmodels = [";
    for (const std::string& model : options.models) text += fmt::format("\"{}\", ", model);
    run = open_run(globals.out,
                   {.verb = "icl risk", .config_toml = text + "]\n", .seed = globals.seed});
  }
  const std::vector<RiskRow> rows = rows_of_cells(globals, run ? &*run : nullptr, study.cells);
  const Json document = risk_document(rows);
  if (run) {
    run->set_document("result", document);
    keep_page(*run, with_setting(study.setting, risk_page(rows)));
  }
  print_result(globals, "icl-risk", document, text_of(rows, options, layers));
}

}  // namespace esscher::cli
