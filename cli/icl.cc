#include "esscher/config/icl.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/execute.h"
#include "cli/flow_estimate.h"
#include "cli/icl_setup.h"
#include "cli/icl_text.h"
#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/config/layer.h"
#include "esscher/json/optimum.h"
#include "esscher/json/training.h"
#include "esscher/report/page_flow.h"
#include "esscher/report/page_optimum.h"
#include "esscher/report/page_twins.h"
#include "esscher/report/report.h"
#include "esscher/report/setting.h"

namespace esscher::cli {
namespace {

void warn_alpha(const Globals& globals, double alpha, const AnyTask& task) {
  const double bound = balanced_start_bound(task.regression());
  if (alpha > 0 && alpha >= bound) {
    print_note(globals, fmt::format("warning: alpha = {:.6g} is outside the interval of the "
                                    "theorem, 0 < alpha < {:.6g}\n",
                                    alpha, bound));
  }
}

// Flows of icl compare. A search for L(eps) takes about a dozen of them, each as long as at the
// greatest length of the others.
std::vector<FlowsToCome> flows_of(const CompareProblem& problem) {
  std::vector<FlowsToCome> out{{.kind = ModelKind::linear}};
  std::int64_t greatest = 100;
  for (const ModelKind kind : problem.kinds) {
    for (const Length L : problem.lengths) {
      // The gap between the gradients has an error bar at every time.
      out.push_back({.kind = kind,
                     .length = L,
                     .besides = problem.setup.points * problem.setup.risk.scramblings});
      if (!L.is_infinite()) greatest = std::max(greatest, L.count());
    }
  }
  for (const ModelKind kind : problem.kinds) {
    out.push_back({.kind = kind,
                   .length = greatest,
                   .count = kFlowsPerSearch * static_cast<int>(problem.eps.size())});
  }
  return out;
}

// The run of --out, if there is one.
std::optional<Run> run_of(const Globals& globals, const char* verb, const Config& config) {
  if (globals.out.empty()) return std::nullopt;
  return open_run(globals.out,
                  {.verb = verb, .config_toml = config.resolved_toml(), .seed = globals.seed});
}

// The flow of any task: computed, kept in the run of --out, printed with these columns.
void finish_flow(const Globals& globals, const IclOptions& options, const Config& config,
                 const Cells<FlowRow>& cells, const std::string& setting,
                 const std::vector<std::string>& columns) {
  std::optional<Run> run = run_of(globals, "icl flow", config);
  const FlowRecord flow = assemble_flow(rows_of_cells(globals, run ? &*run : nullptr, cells));
  const Json document = flow_document(flow);
  if (run) {
    run->set_document("model", document);
    keep_page(*run, with_setting(setting, flow_page(flow, rerun(globals, "icl flow", options))));
  }
  print_result(globals, "icl-flow", document,
               show_table(std::vector<FlowRow>{flow.summary}, columns));
}

// The same of a comparison.
void finish_compare(const Globals& globals, const IclOptions& options, const Config& config,
                    const Cells<TwinRow>& cells, const std::string& setting) {
  std::optional<Run> run = run_of(globals, "icl compare", config);
  const CompareResult result = assemble_twins(rows_of_cells(globals, run ? &*run : nullptr, cells));
  if (run) {
    keep_page(*run,
              with_setting(setting, twins_page(result, rerun(globals, "icl compare", options))));
  }
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

std::string sharp_note(const std::vector<OptimumRow>& rows) {
  std::string lengths;
  for (const OptimumRow& row : rows) {
    if (row.sharp) lengths += (lengths.empty() ? "" : ", ") + row.L.text();
  }
  if (lengths.empty()) return "";
  return "at L = " + lengths + " the search left at scores of deviation " + brief(kSharpest) +
         ": the best layer is sharper, and\nmay be the one that takes the largest token.\n";
}

}  // namespace

void icl_flow(const Globals& globals, const IclOptions& options) {
  Config config = icl_config(globals, options);
  set_length(config, options);
  if (read_task_type(config.root()) != TaskType::regression) {
    return icl_layer_flow(globals, options, config);
  }
  const FlowProblem problem = read_flow_problem(config.root(), globals.seed);
  config.check_all_used();
  if (globals.dry_run) {
    print_dry_run(globals,
                  flow_estimate("icl flow", "a gradient flow at L = " + problem.length.text(), 1,
                                problem.setup,
                                {{.kind = problem.kind,
                                  .length = problem.length,
                                  .besides = problem.setup.risk.scramblings}}));
    return;
  }
  warn_alpha(globals, problem.alpha, problem.setup.task);
  finish_flow(globals, options, config, flow_cells(problem), setting_of(problem.setup.task),
              {"model", "L", "status", "t", "risk", "bayes", "gradient_norm", "conserved_drift",
               "energy_defect", "limit_distance"});
}

void icl_layer_flow(const Globals& globals, const IclOptions& options, const Config& config) {
  const LayerFlowProblem problem = read_layer_flow_problem(config.root(), globals.seed);
  config.check_all_used();
  if (globals.dry_run) return print_dry_run(globals, flow_estimate(problem));
  finish_flow(globals, options, config, flow_cells(problem), setting_of(problem.model.task),
              {"task", "model", "L", "status", "t", "risk", "bayes", "affine", "gradient_norm",
               "conserved_drift", "energy_defect"});
}

void icl_compare(const Globals& globals, const IclOptions& options) {
  Config config = icl_config(globals, options);
  set_lengths(config, options);
  if (read_task_type(config.root()) != TaskType::regression) {
    return icl_layer_compare(globals, options, config);
  }
  const CompareProblem problem = read_compare_problem(config.root(), globals.seed);
  config.check_all_used();
  if (globals.dry_run) {
    const Cells<TwinRow> cells = twin_cells(problem);
    print_dry_run(globals, flow_estimate("icl compare", "flows at several lengths and at infinity",
                                         static_cast<std::int64_t>(cells.keys.size()),
                                         problem.setup, flows_of(problem)));
    return;
  }
  warn_alpha(globals, read_flow_problem(config.root(), globals.seed).alpha, problem.setup.task);
  finish_compare(globals, options, config, twin_cells(problem), setting_of(problem.setup.task));
}

void icl_layer_compare(const Globals& globals, const IclOptions& options, const Config& config) {
  const LayerCompareProblem problem = read_layer_compare_problem(config.root(), globals.seed);
  config.check_all_used();
  if (globals.dry_run) return print_dry_run(globals, flow_estimate(problem));
  finish_compare(globals, options, config, twin_cells(problem),
                 setting_of(problem.flow.model.task));
}

void icl_optimum(const Globals& globals, const IclOptions& options) {
  Config config = icl_config(globals, options);
  set_lengths(config, options);
  const OptimumProblem problem = read_optimum_problem(config.root(), globals.seed);
  config.check_all_used();
  const Cells<OptimumRow> cells = optimum_cells(problem);
  if (globals.dry_run) {
    constexpr double kEvaluations = 60;  // of the gradient, in a typical descent
    const FamilyMap map(problem.family, problem.task, problem.kinds);
    const Layer like = map.layer(Vector::Constant(map.size(), 0.3));
    const double once = cpu_seconds([&] {
      for (const Length L : problem.lengths) {
        Layer gradient;
        (void)layer_risk_function(problem.task, like, L, problem.risk)(like, &gradient);
      }
    });
    print_dry_run(globals, {.verb = "icl optimum",
                            .what = "the best layer at each length",
                            .engine = "descents on the exact risk",
                            .count = static_cast<std::int64_t>(cells.keys.size()),
                            .cpu_seconds = once * kEvaluations * problem.restarts,
                            .basis = "one gradient at each length was timed"});
    return;
  }
  std::optional<Run> run = run_of(globals, "icl optimum", config);
  const std::vector<OptimumRow> rows = rows_of_cells(globals, run ? &*run : nullptr, cells);
  const Json document = optimum_document(rows);
  if (run) {
    run->set_document("result", document);
    keep_page(*run, with_setting(setting_of(problem.task), optimum_page(rows)));
  }
  print_result(globals, "icl-optimum", document,
               show_table(rows, {"L", "risk", "std_error", "u", "v", "w", "limit_risk", "bayes",
                                 "affine", "linear", "linear_heads", "mirror_risk", "restarts",
                                 "agreeing", "converged"}) +
                   sharp_note(rows));
}

void add_icl(const Command& app, Globals& globals) {
  const Command icl = app.add("icl", "In-context learning: risks, flows, training");
  icl.require_verb();
  icl.footer("'esscher help icl risk' and so on show tables and examples.");
  // The options live as long as the program, as Globals do.
  static IclOptions options;
  constexpr const char* kOne = "prompt length, e.g. 100, 1e6 or inf";
  constexpr const char* kSeveral = "prompt lengths, e.g. 10,1e6,inf";
  const auto add = [&](const char* name, const char* text, const char* length, const char* examples,
                       const Offered& offered, void (*run)(const Globals&, const IclOptions&)) {
    const Command verb = add_verb(icl, globals, name, text, examples, offered);
    verb.option("--preset", options.preset, "a published setting, see 'esscher presets'")
        .type_name("NAME");
    verb.option("--length", options.lengths, length).type_name(length == kOne ? "L" : "L,..");
    verb.run([&globals, run] { run(globals, options); });
    return verb;
  };
  const Command risk = add(
      "risk", "Risks of a model at any prompt length, beside Bayes", kSeveral,
      "Reads [task], [model], [sweep] lengths and [flow] (quadrature); 'esscher config icl risk'\n"
      "prints every key. task.type = \"denoising\", \"single_index\", \"classification\" or "
      "\"pool\"\n"
      "asks for the risk of a layer on another task, beside the best map of the query.\n"
      "With --temperature, --factor or --shift: risks over temperatures, and the best one.\n"
      "With several --model: train at L, test at other lengths; --out draws it.\n"
      "Examples:\n"
      "  esscher icl risk --set task.dim=5 --length 10,1000,inf\n"
      "  esscher icl risk --model runs/train --length 1e4 --set task.query_cov=4.0\n"
      "  esscher icl risk --model runs/short,runs/long --length 10,1000 --out runs/lengths\n"
      "  esscher icl risk --model runs/train --length 100,1e4 --temperature 0.5,1,2 --shift "
      "covariance=4",
      {.dry_run = true}, icl_risk);
  risk.option("--model", options.models,
              "runs of icl flow or icl train, or their JSON; several make a table")
      .type_name("RUN")
      .delimiter(',')
      .one_value();
  risk.option("--temperature", options.temperatures, "what scores are divided by, e.g. 0.5,1,2")
      .type_name("T,..")
      .delimiter(',');
  risk.option("--factor", options.factors, "what scores are multiplied by, instead")
      .type_name("F,..")
      .delimiter(',')
      .excludes("--temperature");
  risk.option("--shift", options.shifts,
              "test on another task: covariance=X, prompt=X, query=X, task=X (multiplied by X) or "
              "noise=X (X is added); may be repeated")
      .type_name("KIND=X")
      .one_value();
  add("flow", "Gradient flow of the exact risk", kOne,
      "Reads [task], [model], [train] length and [flow]; 'esscher config icl flow' prints every "
      "key.\n"
      "Every task.type flows: one head on regression, a layer on the others (model.family).\n"
      "Examples:\n"
      "  esscher icl flow --set task.dim=5 --length inf\n"
      "  esscher icl flow --set task.type=denoising --set 'task.means=[[1.5],[-1.5]]' --length "
      "inf\n"
      "  esscher icl flow --preset zfb-shifts --out runs/flow",
      {.shard = true, .dry_run = true}, icl_flow);
  add("train", "Stochastic training on fresh prompts", kOne,
      "Reads [task], [model] and [train]; 'esscher config icl train' prints every key.\n"
      "Every task.type trains: heads on regression, a layer on the others (model.family).\n"
      "With --out the training is a run that resumes; --extend goes on with a finished one.\n"
      "Examples:\n"
      "  esscher icl train --set task.dim=5 --set train.optimizer=adam --set train.steps=500 "
      "--length 100 --out runs/train\n"
      "  esscher icl train --out runs/train --extend 1000\n"
      "  esscher icl train --preset boursier-boyer --length 50 --dry-run",
      {.dry_run = true}, icl_train)
      .option("--extend", options.extend, "continue the training in --out to this many steps")
      .type_name("STEPS")
      .positive();
  add("compare", "Flows at several lengths and at infinity from one start", kSeveral,
      "Reads [task], [model], [sweep] lengths and eps, and [flow]; 'esscher config icl compare'\n"
      "prints every key. Every task.type is compared: heads on regression, a layer on the others.\n"
      "Examples:\n"
      "  esscher icl compare --set task.dim=1 --length 10,100 --set flow.log2_nodes=6 --set "
      "'sweep.eps=[0.5]'",
      {.shard = true, .dry_run = true}, icl_compare);
  add("optimum", "The best layer of a family at each prompt length", kSeveral,
      "Reads [task] of another type than regression, [model], [sweep] lengths and [flow] "
      "restarts;\n"
      "'esscher config icl optimum' prints every key. model.parametrisation with key_dim searches\n"
      "scores of low rank, and model.init is the first start.\n"
      "Examples:\n"
      "  esscher icl optimum --set task.type=denoising --set 'task.means=[[1.5],[-1.5]]' --length "
      "10,1000,inf",
      {.shard = true, .dry_run = true}, icl_optimum);
}

}  // namespace esscher::cli
