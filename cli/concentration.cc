// esscher concentration: how far a prompt of length L is from its limit.
#include "esscher/json/concentration.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>

#include "cli/execute.h"
#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/config/presets.h"
#include "esscher/config/sweep.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/report/page_concentration.h"
#include "esscher/report/report.h"

namespace esscher::cli {
namespace {

constexpr std::string_view kBoundPrefix = "prop";  // --bound prop3.1

struct ConcentrationOptions {
  std::string preset;
  std::string bound;
  std::vector<double> sigmas;
  bool gaussian_fit = false;
};

// The expected weight of every part of the prompt at the longest length.
std::string weights_text(const StudyResult& r) {
  if (r.parts.empty()) return "";
  std::string out = fmt::format("\nexpected weights at L = {}:", r.rows.back().L);
  for (std::size_t k = 0; k < r.parts.size(); ++k) {
    out += fmt::format("  {} {}", r.parts[k], brief(r.rows.back().weights[static_cast<Index>(k)]));
  }
  return out + "\n";
}

std::string table_text(const StudyResult& r, const std::vector<SigmaPoint>& sweep,
                       const std::optional<BoundReport>& bound) {
  std::string out = r.how + "\n" + r.regime.text;
  if (std::isfinite(r.regime.lambda)) {
    out += fmt::format(" (lambda = {:.4g}, gamma = {:.4g})", r.regime.lambda, r.regime.gamma);
  }
  out += fmt::format("\n\n{:>8}  {:>14}  {:>11}  {:>24}  {:>11}  {:>9}  {:>7}  {:>7}  {:>7}\n",
                     "metric", "L", "D(L)", "95 % interval", "constant/L", "ESS", "bias %",
                     "shrink", "frozen");
  std::string flag;  // of the first row that has one
  for (const StudyRow& row : r.rows) {
    const std::string ci =
        row.std_error == 0 ? "exact" : fmt::format("[{:.5g}, {:.5g}]", row.ci.lo, row.ci.hi);
    out +=
        fmt::format("{:>8}  {:>14}  {:>11.5g}  {:>24}  {:>11}  {:>9}  {:>7}  {:>7}  {:>7}{}\n",
                    name(row.metric), row.L, row.value, ci, brief_or_dash(row.asymptotic),
                    brief_or_dash(row.ess), brief_or_dash(100 * row.bias2 / row.value),
                    brief_or_dash(row.shrink()), brief_or_dash(row.frozen), row.heavy ? "  !" : "");
    if (flag.empty()) flag = row.flag;
  }
  if (!flag.empty()) {
    out += "! this interval cannot be trusted: " + flag +
           "; use engine = \"exact\", or more queries or prompts\n";
  }
  out += weights_text(r);
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
        "\n\n   scale     sigma  metric  lambda  predicted  measured exponent   c_2 = exponent * "
        "sigma^2\n";
  for (const SigmaPoint& p : sweep) {
    out += fmt::format("{:>8.4g}  {:>8.4g}  {:>6}  {:>6}  {:>9}  {:>9.4f} +- {:.4f}   {:.4f}\n",
                       p.scale, p.sigma, name(p.metric), brief_or_dash(p.lambda),
                       brief_or_dash(p.gamma), p.exponent, p.std_error, p.c2);
  }
  if (bound) out += "\n\nbound: " + bound->verdict.text;
  return out + "\n";
}

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

void execute(const Globals& globals, const ConcentrationOptions& options) {
  const Config config = globals.load_config(options.preset);
  const Problem problem = read_problem(config.root());
  const StudyOptions sweep = read_sweep(config.root(), globals.seed);
  allow_preset(config.root());
  config.check_all_used();
  const Study study(problem, sweep);
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
  Json document = document_of(result, problem, globals.seed);
  if (!sigmas.empty()) document["sigma_sweep"] = to_json(sigmas);
  if (bound) document["bound"] = to_json(*bound);
  if (fit) document["gaussian_fit"] = to_json(*fit);
  if (run) {
    run->set_document("result", document);
    const Page page =
        concentration_page(result, sigmas, bound, exact_twin(problem, sweep, result), fit);
    set_page(*run, page);
    if (run->is_writer()) write_report(*run, page, run->directory() / "report.html");
  }
  print_result(globals, "concentration", document, table_text(result, sigmas, bound));
}

}  // namespace

void add_concentration(const Command& app, Globals& globals) {
  const Command verb = add_verb(
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
  verb.option("--preset", options->preset, "a published setting, see 'esscher presets'")
      .type_name("NAME");
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
  verb.run([&globals, options] { execute(globals, *options); });
}

}  // namespace esscher::cli
