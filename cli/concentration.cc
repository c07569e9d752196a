// esscher concentration: how far a prompt of length L is from its limit.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>

#include "cli/execute.h"
#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/concentration/bound.h"
#include "esscher/concentration/study.h"
#include "esscher/config/icl.h"
#include "esscher/config/sweep.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/report/concentration_page.h"
#include "esscher/report/report.h"
#include "esscher/store/run.h"

namespace esscher::cli {
namespace {

struct ConcentrationOptions {
  std::string preset;
  std::string bound;
  std::vector<double> sigmas;
  bool gaussian_fit = false;
};

std::string short_or_dash(double x) { return std::isfinite(x) ? fmt::format("{:.4g}", x) : "-"; }

std::string table_text(const StudyResult& r, const std::vector<SigmaPoint>& sweep,
                       const std::optional<BoundReport>& bound) {
  std::string out = r.how + "\n" + r.regime.text;
  if (std::isfinite(r.regime.lambda)) {
    out += fmt::format(" (lambda = {:.4g}, gamma = {:.4g})", r.regime.lambda, r.regime.gamma);
  }
  out += fmt::format("\n\n{:>8}  {:>14}  {:>11}  {:>24}  {:>11}  {:>9}  {:>7}  {:>7}  {:>7}\n",
                     "metric", "L", "D(L)", "95 % interval", "constant/L", "ESS", "bias %",
                     "shrink", "frozen");
  bool heavy = false;
  for (const StudyRow& row : r.rows) {
    const std::string ci =
        row.std_error == 0 ? "exact" : fmt::format("[{:.5g}, {:.5g}]", row.ci.lo, row.ci.hi);
    out +=
        fmt::format("{:>8}  {:>14}  {:>11.5g}  {:>24}  {:>11}  {:>9}  {:>7}  {:>7}  {:>7}{}\n",
                    name(row.metric), row.L, row.value, ci, short_or_dash(row.asymptotic),
                    short_or_dash(row.ess), short_or_dash(100 * row.bias2 / row.value),
                    short_or_dash(row.shrink()), short_or_dash(row.frozen), row.heavy ? "  !" : "");
    heavy = heavy || row.heavy;
  }
  if (heavy)
    out +=
        "! heavy tail: rare queries carry the average and this interval cannot be trusted; use "
        "engine = \"exact\" or more queries\n";
  for (const MetricFit& f : r.fits) {
    out += fmt::format("\n{}: D(L) ~ L^{:.4f}, 95 % [{:.4f}, {:.4f}], last local exponent {:.4f}",
                       name(f.metric), f.power.slope, f.power.ci.lo, f.power.ci.hi,
                       f.local.back().exponent);
    for (const ShapeFit& s : f.shapes) {
      if (s.weight > 0.5)
        out += fmt::format("; best shape {} with g = {:.4f} (weight {:.2f})", name(s.shape), s.g,
                           s.weight);
    }
  }
  if (!sweep.empty())
    out +=
        "\n\n   sigma  metric  lambda  predicted  measured exponent   c_2 = exponent * sigma^2\n";
  for (const SigmaPoint& p : sweep) {
    out += fmt::format("{:>8.4g}  {:>6}  {:>6}  {:>9}  {:>9.4f} +- {:.4f}   {:.4f}\n", p.sigma,
                       name(p.metric), short_or_dash(p.lambda), short_or_dash(p.gamma), p.exponent,
                       p.std_error, p.c2);
  }
  if (bound) out += "\n\nbound: " + bound->verdict;
  return out + "\n";
}

StudyResult compute(const Study& study, std::optional<Run>& run, const Globals& globals) {
  if (run) {
    const auto cell = [&](std::size_t i) { return study.compute(i); };
    if (!run_cells(*run, study.keys(), cell, exec_options(globals))) end_shard(globals, *run);
    return study.assemble(run->rows());
  }
  std::vector<Json> rows;
  for (std::size_t i = 0; i < study.keys().size(); ++i) {
    auto part = study.compute(i);
    std::move(part.begin(), part.end(), std::back_inserter(rows));
  }
  return study.assemble(rows);
}

// Tokens replaced by the Gaussian with their mean and covariance.
Problem gaussian_fit(Problem problem) {
  const Vector m = problem.mu.mean();
  const Matrix cov = problem.mu.second_moment() - m * m.transpose();
  problem.mu = Gaussian(m, 0.5 * (cov + cov.transpose()));
  return problem;
}

// What a sampled study should have found, where the exact engine can tell.
std::optional<StudyResult> exact_twin(const Problem& problem, StudyOptions options,
                                      const StudyResult& result) {
  const bool closed = problem.nu && gaussian_law(problem.mu) && gaussian_law(*problem.nu);
  if (!closed || result.rows.front().engine == Engine::exact) return std::nullopt;
  options.engine = Engine::exact;
  try {
    return study(problem, options);
  } catch (const CapabilityError&) {
    return std::nullopt;  // scores too sharp
  }
}

void execute(const Globals& globals, const ConcentrationOptions& options) {
  const Config config = globals.load_config(options.preset);
  const Problem problem = read_problem(config.root());
  const StudyOptions sweep = read_sweep(config.root(), globals.seed);
  skip_preset(config.root());
  config.check_all_used();
  const Study study(problem, sweep);
  std::optional<Run> run;
  if (!globals.out.empty()) {
    run = open_run(globals.out, {"concentration", config.resolved_toml(), globals.seed});
  }
  const StudyResult result = compute(study, run, globals);
  std::vector<SigmaPoint> sigmas;
  if (!options.sigmas.empty()) sigmas = sigma_sweep(problem, sweep, options.sigmas);
  std::optional<BoundReport> bound;
  if (!options.bound.empty()) {
    const auto p = options.bound == "prop3.1" ? Proposition::prop31 : Proposition::prop34;
    bound = check_bound(p, problem, result, globals.seed);
  }
  Json document = to_json(result);
  document["seed"] = globals.seed;
  document["law"] = {{"measure", problem.mu.name()},
                     {"query", problem.nu ? problem.nu->name() : "points"},
                     {"dim", problem.mu.dim()}};
  if (!sigmas.empty()) document["sigma_sweep"] = to_json(sigmas);
  if (bound) document["bound"] = to_json(*bound);
  std::optional<StudyResult> fit;
  if (options.gaussian_fit) {
    fit = esscher::study(gaussian_fit(problem), sweep);
    document["gaussian_fit"] = to_json(*fit);
  }
  if (run) {
    run->set_document("result", document);
    run->set_document("report", concentration_page(result, sigmas, bound,
                                                   exact_twin(problem, sweep, result), fit));
    if (run->is_writer()) write_report(*run, run->directory() / "report.html");
  }
  print_result(globals, "concentration", document, table_text(result, sigmas, bound));
}

}  // namespace

void add_concentration(CLI::App& app, Globals& globals) {
  CLI::App* verb = add_verb(
      app, globals, "concentration",
      "How far a prompt of length L is from its limit, and how fast it gets there",
      "Reads [measure], [attention], [query] (N(0,I) unless given) and [sweep]: lengths, metrics, "
      "engine,\n"
      "queries, replicates. Gaussian tokens and queries need no sampling at all, up to L = 1e15.\n"
      "With --out the study is a run that resumes, with report.html.\n"
      "Examples:\n"
      "  esscher concentration --set measure.type=gaussian --set measure.dim=4 --set "
      "attention.U=0.3\n"
      "  esscher concentration --config exp.toml --bound prop3.1 --out runs/bound\n"
      "  esscher concentration --set measure.type=gaussian --set measure.dim=1 --set "
      "sweep.metrics='[\"output\"]' \\\n"
      "      --set 'sweep.lengths={from=1e8,to=1e12,per_decade=2}' --sigma-sweep "
      "0.5,0.6,0.7,0.8,0.9,1.0,1.2");
  const auto options = std::make_shared<ConcentrationOptions>();
  verb->add_option("--preset", options->preset, "a published setting, see 'esscher presets'")
      ->type_name("NAME");
  verb->add_option("--bound", options->bound, "check hypotheses and shape of the paper's bound")
      ->type_name("prop3.1|prop3.4")
      ->check(CLI::IsMember({"prop3.1", "prop3.4"}));
  verb->add_option("--sigma-sweep", options->sigmas,
                   "scale the tokens by each sigma and measure the exponent")
      ->type_name("S,S,..")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  verb->add_flag("--gaussian-fit", options->gaussian_fit,
                 "the same study for the Gaussian with the mean and covariance of the tokens, as "
                 "\"gaussian_fit\"");
  verb->callback([&globals, options] { execute(globals, *options); });
}

}  // namespace esscher::cli
