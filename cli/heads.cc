// esscher heads: which heads of a model are linear in disguise.

#include "esscher/json/heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cli/dry_run.h"
#include "cli/execute.h"
#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/base/parallel.h"
#include "esscher/heads/diagnose.h"
#include "esscher/heads/load.h"
#include "esscher/heads/surrogate_file.h"
#include "esscher/io/file.h"
#include "esscher/model/allocate.h"
#include "esscher/report/page_heads.h"
#include "esscher/report/report.h"

namespace esscher::cli {
namespace {

struct HeadsArguments {
  std::string file;
  std::optional<double> scale;
  bool causal = false;
  bool no_causal = false;
  std::vector<Index> components = {2, 4, 8, 16, 32};
  Index queries = 128;
  std::vector<Index> at;
  double tolerance = 0.1;
  std::string export_file;
  std::vector<Index> windows = {8, 16, 32, 64};
  Index sinks = 1;
  Index heavy = 0;
  std::vector<Index> budgets;
  Index gap = -1;
  std::optional<double> rotary;
  std::string rotary_pairs = "halves";
  std::string layout;
  std::optional<double> sliding, softcap, sink, alibi;
  std::int64_t plan_bytes = 0;
  std::string plan_file;
};

HeadOptions options_of(const HeadsArguments& arguments, const Globals& globals) {
  HeadOptions options;
  options.components = arguments.components;
  options.most_queries = arguments.queries;
  options.queries = arguments.at;
  options.tolerance = arguments.tolerance;
  options.seed = globals.seed;
  options.windows = arguments.windows;
  if (options.windows == std::vector<Index>{0}) options.windows.clear();
  options.sinks = arguments.sinks;
  options.heavy = arguments.heavy;
  options.budgets = arguments.budgets;
  options.gap = arguments.gap;
  return options;
}

HeadFileOptions file_options(const HeadsArguments& arguments) {
  HeadFileOptions options;
  options.scale = arguments.scale;
  if (arguments.causal || arguments.no_causal) options.causal = arguments.causal;
  if (!arguments.layout.empty()) options.layout = parse_enum<HeadLayout>(arguments.layout);
  options.sliding = arguments.sliding;
  options.softcap = arguments.softcap;
  options.sink = arguments.sink;
  options.alibi = arguments.alibi;
  if (arguments.rotary) {
    options.rotary =
        Rotary{.base = *arguments.rotary, .pairs = parse_enum<RotaryPairs>(arguments.rotary_pairs)};
  }
  return options;
}

std::string or_file(const std::optional<double>& given) {
  return given ? to_text(*given) : "\"file\"";
}

// What decides the numbers, as the configuration of the run.
std::string run_config(const HeadsArguments& arguments) {
  return fmt::format(
      "[heads]\nfile = \"{}\"\nscale = {}\ncausal = \"{}\"\ncomponents = [{}]\n"
      "queries = {}\nat = [{}]\ntolerance = {}\nwindows = [{}]\nsinks = {}\nrotary = {}\n"
      "layout = \"{}\"\nsliding = {}\nsoftcap = {}\nsink = {}\nalibi = {}\nbudget = [{}]\ngap = "
      "{}\n{}",
      arguments.file, arguments.scale ? to_text(*arguments.scale) : "\"file\"",
      arguments.causal ? "yes" : (arguments.no_causal ? "no" : "file"),
      fmt::join(arguments.components, ", "), arguments.queries, fmt::join(arguments.at, ", "),
      arguments.tolerance, fmt::join(arguments.windows, ", "), arguments.sinks,
      arguments.rotary ? fmt::format("\"{} {}\"", *arguments.rotary, arguments.rotary_pairs)
                       : "\"file\"",
      arguments.layout.empty() ? "file" : arguments.layout, or_file(arguments.sliding),
      or_file(arguments.softcap), or_file(arguments.sink), or_file(arguments.alibi),
      fmt::join(arguments.budgets, ", "), arguments.gap,
      // A run without heavy keys is the same as one that was begun before there were any.
      arguments.heavy > 0 ? fmt::format("heavy = {}\n", arguments.heavy) : "");
}

// How the forecast did where the answer is known.
std::string forecast_test_text(const ForecastTest& test) {
  std::string text = fmt::format(
      ". From its first {} keys that forecast gives {:.1f} at {}, where it is {:.1f}, and {} for "
      "the weight of the heaviest of them, which is {}",
      test.from, test.ess_forecast, test.to, test.ess, brief(test.needle_forecast, 3),
      brief(test.needle, 3));
  if (const std::string why = drift_text(test); !why.empty()) text += "; " + why;
  return text;
}

// "longer prompts than 128 keys: its scores deviate by 0.71 sqrt(log n) (averaging phase); ESS 77.1 at
// 256 keys, ...". The number is what the forecast reads, which is not all of a very long prompt.
std::string longer_text(const HeadDiagnosis& head) {
  std::string text = fmt::format(
      "longer prompts than {:.0f} keys: its scores deviate by {} sqrt(log n) ({} phase); ESS",
      head.longer_prompts->front().n / 2, brief(*head.score_c, 3), name(*head.phase));
  std::string needles;
  for (const ForecastRow& row : *head.longer_prompts) {
    const char* comma = &row == &head.longer_prompts->front() ? "" : ",";
    text += fmt::format("{} {:.1f} at {:.0f} keys", comma, row.ess, row.n);
    needles += fmt::format("{} {}", comma, brief(row.needle, 3));
  }
  text += "; the heaviest key of today weighs" + needles;
  const ForecastRow& longest = head.longer_prompts->back();
  if (longest.factor) {
    text += fmt::format("; scores times {} would keep today's ESS", brief(*longest.factor, 3));
  }
  for (const ForecastTest& test : *head.forecast_test) text += forecast_test_text(test);
  return text;
}

std::string heads_text(const std::vector<HeadDiagnosis>& heads) {
  std::string text = fmt::format("{:<32} {:>8} {:>4} {:>8} {:>9} {:>7} {:>7} {:>8}  {}\n", "head",
                                 "n", "d", "tau2", "ess", "lin", "lin_c", "control", "verdict");
  for (const HeadDiagnosis& head : heads) {
    text += fmt::format("{:<32} {:>8} {:>4} {:>8.3f} {:>9.1f} {:>7.3f} {:>7.3f} {:>8.3f}  {}\n",
                        head.name, head.n, head.dk, head.tau2, head.ess, head.gaussian.lin,
                        head.gaussian.lin_c, head.control_lin_c, head.verdict);
  }
  for (const HeadDiagnosis& head : heads) {
    text += fmt::format("{}: {}\n", head.name, head.reason);
    if (head.mixture_keys) {
      text += fmt::format("{}: mixtures have their moments from {} evenly spaced keys of {}\n",
                          head.name, *head.mixture_keys, head.n);
    }
    if (head.why) text += fmt::format("{}: why: {}\n", head.name, *head.why);
    if (head.longer_prompts) text += fmt::format("{}: {}\n", head.name, longer_text(head));
    if (head.window_verdict) text += fmt::format("{}: {}\n", head.name, *head.window_verdict);
    if (head.budget_verdict) text += fmt::format("{}: {}\n", head.name, *head.budget_verdict);
  }
  return text;
}

// The same as a run on disk: one cell per head, resumable, with a report.
std::vector<HeadDiagnosis> diagnose_run(const Cells<HeadDiagnosis>& cells,
                                        const HeadsArguments& arguments, const Globals& globals) {
  Run run = open_run(globals.out,
                     {.verb = "heads", .config_toml = run_config(arguments), .seed = globals.seed});
  std::vector<HeadDiagnosis> rows = rows_of_cells(globals, &run, cells);
  if (run.is_writer()) {
    const Page page = heads_page(rows);
    set_page(run, page);
    write_report(run, page, run.directory() / "report.html");
  }
  return rows;
}

void export_surrogates(const std::vector<Head>& heads, const HeadsArguments& arguments,
                       const Globals& globals) {
  const HeadOptions options = options_of(arguments, globals);
  std::vector<std::vector<Surrogate>> fitted(heads.size());
  parallel_for(static_cast<std::int64_t>(heads.size()), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    fitted[at] = fit_surrogates(heads[at], options);
  });
  std::vector<NamedSurrogate> surrogates;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    for (Surrogate& one : fitted[i]) {
      surrogates.push_back(
          {.head = heads[i].name, .scale = heads[i].scale, .surrogate = std::move(one)});
    }
  }
  write_surrogates(arguments.export_file, surrogates);
}

// Windows and tails for a total number of bytes, for `esscher model --replace`.
void add_plan(const std::vector<HeadDiagnosis>& heads, const HeadsArguments& arguments,
              Json& document, std::string& text) {
  const Allocation plan = allocate_windows(heads, arguments.sinks, arguments.plan_bytes);
  document["plan"] = parse_json("plan", plan_text(plan.plan));
  document["plan_bytes"] = plan.bytes;
  put(document, "plan_error", plan.error);
  text += fmt::format("plan: {} bytes, sum of errors (lin) {:.4f} over {} heads\n", plan.bytes,
                      plan.error, heads.size());
  if (!arguments.plan_file.empty()) write_text(arguments.plan_file, plan_text(plan.plan));
}

// Heavy keys are chosen by the queries before them.
void check_heavy(const std::vector<Head>& heads, const HeadsArguments& arguments) {
  const auto weighs = [](const Head& head) { return head.has_whole_text() && head.rules.none(); };
  if (arguments.heavy > 0 && std::none_of(heads.begin(), heads.end(), weighs)) {
    throw ConfigError(fmt::format(
        "heads: --heavy is {}, but no head of {} is causal with a query for every key, expected "
        "such a head, whose earlier queries weigh the keys (see --causal)",
        arguments.heavy, arguments.file));
  }
}

// A plan is for windows that read the keys of the whole prompt as they are.
void check_plan_heads(const std::vector<Head>& heads, const HeadsArguments& arguments) {
  if (arguments.plan_bytes == 0) return;
  for (const Head& head : heads) {
    if (head.rules.none()) continue;
    throw ConfigError(
        fmt::format("heads: --plan is {}, but head {} has a mask, a sliding window, a softcap or a "
                    "sink logit, expected "
                    "heads without them, because nothing that runs plans knows of them",
                    arguments.plan_bytes, head.name));
  }
}

void run_heads(const HeadsArguments& arguments, const Globals& globals) {
  const std::vector<Head> heads = load_heads(arguments.file, file_options(arguments));
  check_heavy(heads, arguments);
  check_plan_heads(heads, arguments);
  const Cells<HeadDiagnosis> cells = diagnosis_cells(heads, options_of(arguments, globals));
  if (globals.dry_run) {
    // Heads of a file mostly have one size.
    const double one = heads.empty() ? 0 : cpu_seconds([&] { (void)cells.compute(0); });
    print_dry_run(globals, {.verb = "heads",
                            .what = fmt::format("a diagnosis of {} heads", heads.size()),
                            .engine = "softmax over all keys; controls by the exact engine",
                            .count = static_cast<std::int64_t>(cells.keys.size()),
                            .cpu_seconds = one * static_cast<double>(heads.size()),
                            .basis = "measured on the first head"});
    return;
  }
  const std::vector<HeadDiagnosis> found =
      globals.out.empty() ? compute_here(cells) : diagnose_run(cells, arguments, globals);
  if (!arguments.export_file.empty()) export_surrogates(heads, arguments, globals);
  Json rows = Json::array();
  for (const HeadDiagnosis& head : found) rows.push_back(diagnosis_json(head));
  Json document{{"rows", std::move(rows)}};
  std::string text = heads_text(found);
  if (arguments.plan_bytes > 0) add_plan(found, arguments, document, text);
  print_result(globals, "heads", std::move(document), text);
}

}  // namespace

void add_heads(const Command& app, Globals& globals) {
  const Command verb = add_verb(
      app, globals, "heads", "Diagnose attention heads: linear in disguise, and from which length",
      "lin and lin_c are medians over queries of |T - T_lin| relative to |T| and to |T - mean V|;\n"
      "control is what Gaussian keys with the same moments and length would show, exactly.\n"
      "Examples:\n"
      "  esscher heads model.safetensors --out runs/heads\n"
      "  esscher heads dump.npz --causal --components 2,4,8 --json\n"
      "  esscher heads model.safetensors --export surrogates.safetensors\n"
      "  esscher heads model.safetensors --window 16,32,64 --sinks 4 --rotary 10000\n"
      "  esscher heads model.safetensors --budget 4,8,16,32,64 --out runs/memory",
      {.config = false, .shard = true, .dry_run = true});
  auto arguments = std::make_shared<HeadsArguments>();
  verb.option("file", arguments->file, ".safetensors, .npz or a directory of .npy files")
      .required();
  verb.option("--scale", arguments->scale, "score scale (default: the file's, else 1/sqrt(d))");
  verb.flag("--causal", arguments->causal, "query i sees keys 0..i (default: the file's, else no)");
  verb.flag("--no-causal", arguments->no_causal, "every query sees every key").excludes("--causal");
  verb.option("--components", arguments->components, "mixture sizes to try")
      .delimiter(',')
      .between(2, 1024);
  verb.option("--queries", arguments->queries,
              "queries per head (default 128: of the second half if causal, else evenly spaced)")
      .positive();
  verb.option("--at", arguments->at, "numbers of the queries to use, from 0").delimiter(',');
  verb.option("--tolerance", arguments->tolerance, "lin_c that counts as linear").positive();
  verb.option("--window", arguments->windows, "exact keys to try before a tail (0: none)")
      .delimiter(',');
  verb.option("--sinks", arguments->sinks, "of them, the first keys of the prompt");
  verb.option(
          "--heavy", arguments->heavy,
          "also try windows that keep so many more keys: those that earlier queries weighed most")
      .between(0, 1000000);
  verb.option("--rotary", arguments->rotary, "base of rotary positions (default: the file's)")
      .positive();
  verb.option("--rotary-pairs", arguments->rotary_pairs, "interleaved or halves")
      .one_of({"interleaved", "halves"});
  verb.option("--budget", arguments->budgets,
              "memories, in keys, to compare ways to keep the prompt in, on unseen queries")
      .delimiter(',')
      .between(1, 1000000);
  verb.option("--gap", arguments->gap,
              "queries left out between calibration and test (default: an eighth, at most 64)");
  verb.option("--layout", arguments->layout,
              "hnd, nhd, bhnd or bnhd: how heads are stacked (default: the file's, else [h,n,d])")
      .one_of({"hnd", "nhd", "bhnd", "bnhd"});
  verb.option("--sliding", arguments->sliding, "keys that a causal query sees, its own the last")
      .positive();
  verb.option("--softcap", arguments->softcap, "scores s become c tanh(s/c)").positive();
  verb.option("--sink-logit", arguments->sink, "score of one more key, of value 0");
  verb.option("--alibi", arguments->alibi, "slope of positions that is added to scores");
  verb.option("--plan", arguments->plan_bytes, "choose windows and tails for so many bytes")
      .positive();
  verb.option("--plan-file", arguments->plan_file, "write that plan, .json");
  verb.option("--export", arguments->export_file, "write the surrogates as .safetensors");
  verb.run([arguments, &globals] { run_heads(*arguments, globals); });
}

}  // namespace esscher::cli
