// esscher length: the shortest prompt whose mean-square error is below eps.
#include "esscher/concentration/length.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cli/verbs.h"
#include "esscher/base/length_grid.h"
#include "esscher/concentration/bound.h"
#include "esscher/config/presets.h"
#include "esscher/config/sweep.h"
#include "esscher/json/concentration.h"
#include "esscher/measure/gaussian_view.h"

namespace esscher::cli {
namespace {

struct Flags {
  std::string preset;
  double eps = 0;
  std::string metric = "output";
  bool relative = false;
  double quantile = 0;  // 0: the average
};

std::string answer_text(const LengthAnswer& a, std::int64_t bound) {
  std::string out;
  if (a.length) {
    out = fmt::format("L = {}  ({}, {} engine)\nD(L) = {:.6g} <= eps = {:.6g}\n", *a.length,
                      name(a.status), name(a.engine), a.value, a.eps);
    if (std::isfinite(a.value_before)) out += fmt::format("D(L-1) = {:.6g}\n", a.value_before);
  } else {
    out = fmt::format("never ({} engine)\n", name(a.engine));
  }
  out += a.explanation + "\n";
  out += std::isfinite(a.clt) ? fmt::format("central limit theorem: {:.0f}\n", a.clt)
                              : "central limit theorem: no answer, the constant is infinite\n";
  out += bound > 0
             ? fmt::format("bound of Prop. 3.1/3.4 with fitted constants: {}\n", bound)
             : "bound of Prop. 3.1/3.4: no answer (it speaks of averages at a finite sigma, and "
               "its fitted form may never fall below eps)\n";
  return out;
}

// The bound's answer, with constants fitted on a curve of the engine that answered; 0 if there is
// none.
std::int64_t bound_answer(const Problem& problem, const LengthAnswer& answer,
                          const LengthOptions& options) {
  const bool closed = answer.engine == Engine::exact && problem.nu && gaussian_law(problem.mu) &&
                      gaussian_law(*problem.nu);
  const StudyOptions sweep{
      .lengths = length_grid(4, closed ? 1000000 : 2000, closed ? 1 : 3),
      .metrics = {options.metric},
      .engine = answer.engine == Engine::quadrature ? Engine::exact : answer.engine,
      .queries = options.queries,
      .replicates = options.replicates,
      .seed = options.seed};
  const StudyResult curve = study(problem, sweep);
  const auto p = options.metric == Metric::output ? Proposition::prop31 : Proposition::prop34;
  const BoundReport bound = check_bound(p, problem, curve, options.seed);
  return bound.fits.empty() ? 0 : bound_length(bound.fits[0], bound.sigma, answer.eps);
}

void execute(const Globals& globals, const Flags& flags) {
  const Config config = globals.load_config(flags.preset);
  const Problem problem = read_problem(config.root());
  const StudyOptions sweep = read_sweep(config.root(), globals.seed);
  allow_preset(config.root());
  config.check_all_used();
  LengthOptions options;
  options.eps = flags.eps;
  options.metric = parse_enum<Metric>(flags.metric);
  options.relative = flags.relative;
  if (flags.quantile > 0) options.quantile = flags.quantile;
  options.engine = sweep.engine;
  options.queries = sweep.queries;
  options.replicates = sweep.replicates;
  options.seed = globals.seed;
  const LengthAnswer answer = shortest_length(problem, options);
  const std::int64_t bound = flags.quantile > 0 || !answer.length || !problem.is_plain()
                                 ? 0
                                 : bound_answer(problem, answer, options);
  Json document = to_json(answer);
  document["bound"] = bound > 0 ? Json(bound) : Json();
  document["metric"] = flags.metric;
  document["relative"] = flags.relative;
  document["quantile"] = flags.quantile > 0 ? Json(flags.quantile) : Json();
  document["seed"] = globals.seed;
  print_result(globals, "length", document, answer_text(answer, bound));
}

}  // namespace

void add_length(const Command& app, Globals& globals) {
  const Command verb =
      add_verb(app, globals, "length", "The shortest prompt whose mean-square error is at most eps",
               "Reads [measure], [attention], [query] (N(0,I) unless given) and engine, queries, "
               "replicates of [sweep].\n"
               "Examples:\n"
               "  esscher length --eps 1e-3 --set measure.type=gaussian --set measure.dim=4 --set "
               "attention.U=0.3\n"
               "  esscher length --eps 0.01 --relative --metric grad_u --config exp.toml --json\n"
               "  esscher length --eps 1e-2 --quantile 0.95 --config exp.toml");
  const auto flags = std::make_shared<Flags>();
  verb.option("--eps", flags->eps, "largest mean-square error allowed").required().positive();
  verb.option("--preset", flags->preset, "a published setting, see 'esscher presets'")
      .type_name("NAME");
  verb.option("--metric", flags->metric, "what is compared with its limit")
      .one_of(enum_words<Metric>())
      .show_default();
  verb.flag("--relative", flags->relative, "eps is a fraction of the squared size of the limit");
  verb.option("--quantile", flags->quantile,
              "this quantile of the error over queries, instead of the average")
      .between(1e-6, 1 - 1e-6);
  verb.run([&globals, flags] { execute(globals, *flags); });
}

}  // namespace esscher::cli
