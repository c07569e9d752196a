// esscher concentration: how far a prompt of length L is from its limit.
#include "esscher/json/concentration.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "cli/concentration_text.h"
#include "cli/dry_run.h"
#include "cli/execute.h"
#include "cli/moments.h"
#include "cli/sup.h"
#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/config/presets.h"
#include "esscher/config/sweep.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/report/page_concentration.h"
#include "esscher/report/report.h"
#include "esscher/report/setting.h"

namespace esscher::cli {
namespace {

constexpr std::string_view kBoundPrefix = "prop";  // --bound prop3.1

constexpr double kOnePercent = 0.01;

struct ConcentrationOptions {
  std::string preset;
  std::string tokens;
  std::string bound;
  std::vector<double> sigmas;
  bool gaussian_fit = false;
  std::string metric;  // "sup": the worst query of a ball; "moments": of self-attention
  double radius = 0;
};

// Tokens replaced by the Gaussian with their mean and covariance.
Problem gaussian_fit(Problem problem) {
  if (!problem.is_plain()) {
    throw CapabilityError("--gaussian-fit: iid tokens have one fit, [prompt] does not");
  }
  const Vector m = problem.mu.mean();
  const Matrix cov = problem.mu.second_moment() - m * m.transpose();
  problem.mu = Gaussian(m, 0.5 * (cov + cov.transpose()));
  return problem;
}

// What a sampled study should have found, where the exact engine can tell without sampling.
std::optional<StudyResult> exact_twin(const Problem& problem, StudyOptions options,
                                      const StudyResult& result) {
  const bool closed =
      problem.is_plain() && problem.nu && gaussian_law(problem.mu) && gaussian_law(*problem.nu);
  if (!closed || result.rows.front().engine == Engine::exact) return std::nullopt;
  options.engine = Engine::automatic;
  const Study twin(problem, options);
  if (twin.choice().engine != Engine::exact) return std::nullopt;  // scores too sharp
  return twin.assemble(compute_here(twin.cells()));
}

Json document_of(const StudyResult& result, const Problem& problem, std::uint64_t seed) {
  Json document = to_json(result);
  document["seed"] = seed;
  document["law"] = {{"measure", problem.mu.name()},
                     {"query", problem.nu ? problem.nu->name() : "points"},
                     {"dim", problem.mu.dim()}};
  return document;
}

// CPU seconds, and what they were measured on.
struct Cost {
  double seconds = 0;
  std::string basis;
};

// A piece of the study: one length of a closed form, or few queries at the shorter lengths. Prompts are
// prefixes of each other, so the cost of sampling grows with the longest one.
Cost cost_of_part(const Problem& problem, StudyOptions sweep, const Study& study) {
  const Cells<PointRow> cells = study.cells();
  if (study.choice().engine == Engine::exact) {
    const double one = cpu_seconds([&] { (void)cells.compute(cells.keys.size() / 2); });
    return {one * static_cast<double>(cells.keys.size()), "measured on one cell"};
  }
  sweep.metrics = study.metrics();
  constexpr std::int64_t kProbeQueries = 2, kProbeReplicates = 2, kProbeLength = 100000;
  StudyOptions small = sweep;
  small.engine = study.choice().engine;
  small.queries = kProbeQueries;
  small.replicates = std::min(sweep.replicates, kProbeReplicates);
  std::erase_if(small.lengths, [](std::int64_t L) { return L > kProbeLength; });
  if (small.lengths.empty()) small.lengths = {kProbeLength};
  Problem piece = problem;
  if (!piece.nu) piece.points = problem.points.topRows(std::min<Index>(2, problem.points.rows()));
  const Cells<PointRow> probe = Study(piece, small).cells();
  const double seconds = cpu_seconds([&] { (void)probe.compute(0); });
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double queries = real(problem.nu ? sweep.queries : problem.points.rows());
  const double drawn = real(problem.nu ? kProbeQueries : piece.points.rows());
  return {seconds * queries / drawn * real(sweep.replicates) / real(small.replicates) *
              real(sweep.lengths.back()) / real(small.lengths.back()),
          fmt::format("measured on {} queries with {} prompts each, up to L = {}", drawn,
                      small.replicates, small.lengths.back())};
}

DryRun estimate(const Problem& problem, const StudyOptions& sweep, const Study& study) {
  DryRun plan{
      .verb = "concentration",
      .what = fmt::format("a study of {} metrics at {} lengths from {} to {}", sweep.metrics.size(),
                          sweep.lengths.size(), sweep.lengths.front(), sweep.lengths.back()),
      .engine = study.choice().reason,
      .count = static_cast<std::int64_t>(study.cells().keys.size())};
  double seconds = 0;
  for (const Study& part : study.parts()) {
    const Cost cost = cost_of_part(problem, sweep, part);
    seconds += cost.seconds;
    plan.basis += (plan.basis.empty() ? "" : "; ") + cost.basis;
  }
  plan.cpu_seconds = seconds;
  return plan;
}

void execute(const Globals& globals, const ConcentrationOptions& options) {
  Config config = globals.load_config(options.preset);
  set_tokens(config, options.tokens);
  if (options.metric == "sup") {
    execute_sup(globals, config, options.radius);
    return;
  }
  if (options.radius > 0) throw ConfigError("--radius belongs to --metric sup; give both");
  if (options.metric == "moments") {
    execute_moments(globals, config);
    return;
  }
  const Problem problem = read_problem(config.root());
  const StudyOptions sweep = read_sweep(config.root(), globals.seed);
  allow_preset(config.root());
  config.check_all_used();
  const Study study(problem, sweep);
  if (globals.dry_run) {
    print_dry_run(globals, estimate(problem, sweep, study));
    return;
  }
  std::optional<Run> run;
  if (!globals.out.empty()) {
    run = open_run(globals.out, {"concentration", config.resolved_toml(), globals.seed});
  }
  const StudyResult result =
      study.assemble(rows_of_cells(globals, run ? &*run : nullptr, study.cells()));
  std::vector<SigmaPoint> sigmas;
  if (!options.sigmas.empty()) sigmas = sigma_sweep(problem, sweep, options.sigmas);
  std::optional<BoundReport> bound;
  if (!options.bound.empty()) {
    const auto proposition = parse_enum<Proposition>(options.bound.substr(kBoundPrefix.size()));
    bound = check_bound(proposition, problem, result, globals.seed);
  }
  std::optional<StudyResult> fit;
  if (options.gaussian_fit) fit = esscher::study(gaussian_fit(problem), sweep);
  const Reach one_percent = study.reach(kOnePercent, result);
  Json document = document_of(result, problem, globals.seed);
  document["one_percent"] = to_json(one_percent);
  if (!sigmas.empty()) document["sigma_sweep"] = to_json(sigmas);
  if (bound) document["bound"] = to_json(*bound);
  if (fit) document["gaussian_fit"] = to_json(*fit);
  if (run) {
    run->set_document("result", document);
    const Page page = with_setting(
        setting_of(problem),
        concentration_page(result, sigmas, bound, exact_twin(problem, sweep, result), fit));
    set_page(*run, page);
    if (run->is_writer()) write_report(*run, page, run->directory() / "report.html");
  }
  print_result(globals, "concentration", document,
               summary_text(result, one_percent) + "\n" + curves_text(result) + sigma_text(sigmas) +
                   (bound ? "\nbound: " + bound->verdict.text + "\n" : ""));
}

}  // namespace

void add_concentration(const Command& app, Globals& globals) {
  const Command verb = add_verb(
      app, globals, "concentration",
      "How far a prompt of length L is from its limit, and how fast it gets there",
      "Reads [measure], [attention], [query] (N(0,I) unless given) and [sweep]: lengths, metrics, "
      "engine,\n"
      "queries, replicates. Gaussian tokens and queries need no sampling at all, up to L = 1e15.\n"
      "--tokens FILE studies prompts drawn from the rows of a file instead of [measure].\n"
      "A summary comes first: regime, constant, exponent, and the length for an error of 1 %.\n"
      "With --out the study is a run that resumes, with report.html.\n"
      "Examples:\n"
      "  esscher concentration --set measure.type=gaussian --set measure.dim=4 --set "
      "attention.U=0.3\n"
      "  esscher concentration --config exp.toml --bound prop3.1 --out runs/bound\n"
      "  esscher concentration --set measure.type=gaussian --set measure.dim=1 --set "
      "sweep.metrics='[\"output\"]' \\\n"
      "      --set 'sweep.lengths={from=1e8,to=1e12,per_decade=2}' --sigma-sweep "
      "0.5,0.6,0.7,0.8,0.9,1.0,1.2",
      {.shard = true, .dry_run = true});
  const auto options = std::make_shared<ConcentrationOptions>();
  verb.option("--preset", options->preset, "a published setting, see 'esscher presets'")
      .type_name("NAME");
  add_tokens(verb, options->tokens);
  verb.option("--bound", options->bound, "check hypotheses and shape of the paper's bound")
      .type_name("prop3.1|prop3.4")
      .one_of({"prop3.1", "prop3.4"});
  verb.option("--sigma-sweep", options->sigmas,
              "scale the tokens by each number and measure the exponent against their sub-Gaussian "
              "constant")
      .type_name("S,S,..")
      .delimiter(',')
      .positive();
  verb.flag("--gaussian-fit", options->gaussian_fit,
            "the same study for the Gaussian with the mean and covariance of the tokens, as "
            "\"gaussian_fit\"");
  verb.option(
          "--metric", options->metric,
          "instead of an average over queries: sup, the largest error of all queries with |z| <= "
          "--radius; moments, mean and covariance of the outputs of self-attention")
      .type_name("sup|moments")
      .one_of({"sup", "moments"});
  verb.option("--radius", options->radius, "radius of the ball of --metric sup").positive();
  verb.run([&globals, options] { execute(globals, *options); });
}

}  // namespace esscher::cli
