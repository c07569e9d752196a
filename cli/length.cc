// esscher length: the shortest prompt whose error is small enough.
#include "esscher/concentration/length.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>

#include "cli/dry_run.h"
#include "cli/style.h"
#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/base/length_grid.h"
#include "esscher/base/number_text.h"
#include "esscher/concentration/bound.h"
#include "esscher/config/presets.h"
#include "esscher/config/sweep.h"
#include "esscher/json/concentration.h"
#include "esscher/measure/gaussian_view.h"

namespace esscher::cli {
namespace {

struct Flags {
  std::string preset;
  std::string tokens;
  std::optional<double> eps;  // mean square
  std::string error_text;     // root mean square relative to the limit: "1%" or "0.01"
  std::string metric = "output";
  bool relative = false;
  double quantile = 0;  // 0: the average
};

// What was asked for: a bound of the mean square, or of the root mean square relative to the limit.
struct Tolerance {
  double eps = 0;
  bool relative = false;
  std::optional<double> error = {};  // --error as a fraction
};

double parse_fraction(const std::string& text) {
  char* end = nullptr;
  const double x = std::strtod(text.c_str(), &end);
  const bool is_percent = *end == '%';
  const bool is_number = end != text.c_str() && *(is_percent ? end + 1 : end) == '\0';
  if (!is_number || !(x > 0) || !std::isfinite(x)) {
    throw ArgumentError("--error is '" + text +
                        "', expected a fraction of the limit > 0, such as 1% or 0.01");
  }
  return is_percent ? x / 100 : x;
}

Tolerance tolerance_of(const Flags& flags) {
  if (flags.eps.has_value() == !flags.error_text.empty()) {
    throw ArgumentError(
        std::string(flags.eps ? "--eps and --error both given"
                              : "neither --eps nor --error given") +
        ", expected one of them: --error 1% bounds the root-mean-square error relative to the "
        "limit, --eps E the mean-square error");
  }
  if (flags.eps) return {.eps = *flags.eps, .relative = flags.relative};
  if (flags.relative) {
    throw ArgumentError("--relative belongs to --eps; --error is relative to the limit already");
  }
  const double error = parse_fraction(flags.error_text);
  return {.eps = error * error, .relative = true, .error = error};
}

// D as it was asked about, with its name.
struct Reading {
  std::string name, bound;
  double (*of)(const LengthAnswer&, double D);
  double asked;
  std::string unit = {};
};

Reading reading_of(const Tolerance& asked) {
  if (asked.error) {
    return {"relative root mean square", "error",
            [](const LengthAnswer& a, double D) { return 100 * a.limit().relative_rms(D); },
            100 * *asked.error, " %"};
  }
  if (asked.relative) {
    return {"D(L)/|limit|^2", "eps",
            [](const LengthAnswer& a, double D) { return D / a.limit_mean_square; }, asked.eps};
  }
  return {"D(L)", "eps", [](const LengthAnswer&, double D) { return D; }, asked.eps};
}

// D(L) <= eps < D(L-1) with the digits that show it; samples decide nothing by their digits.
std::string comparison_text(const LengthAnswer& a, const Tolerance& asked) {
  const Reading reading = reading_of(asked);
  const double at = reading.of(a, a.value), before = reading.of(a, a.value_before);
  const bool is_certified = a.status == LengthStatus::certified;
  std::vector<double> numbers{at, reading.asked};
  if (is_certified && std::isfinite(before)) numbers.push_back(before);
  std::vector<std::string> text = brief_apart(numbers);
  for (std::string& number : text) number += reading.unit;
  if (!is_certified) {
    return fmt::format("{} = {} at L, {} = {}\n", reading.name, text[0], reading.bound, text[1]);
  }
  return fmt::format("{} = {} <= {} = {}{}\n", reading.name, text[0], reading.bound, text[1],
                     text.size() > 2 ? " < " + text[2] + " at L-1" : "");
}

// The same error as a square and as a root, so that nobody takes one for the other.
std::string readings_text(const LengthAnswer& a) {
  const LimitSize limit = a.limit();
  const double relative = limit.relative_rms(a.value);
  const auto of_limit = [](double fraction, const char* what) {
    return std::isfinite(fraction) ? fmt::format(", {} % of {}", brief(100 * fraction, 3), what)
                                   : std::string();
  };
  const std::string noise =
      a.std_error > 0 ? fmt::format(" (standard error {})", brief(a.std_error, 2)) : "";
  return fmt::format("mean-square error {}{}{}\nroot-mean-square error {}{}\n", brief(a.value),
                     noise, of_limit(relative * relative, "the squared size of the limit"),
                     brief(std::sqrt(a.value)), of_limit(relative, "the size of the limit"));
}

std::string answer_text(const LengthAnswer& a, const Tolerance& asked, std::int64_t bound) {
  std::string out;
  if (a.length) {
    out = strong(fmt::format("L = {}", *a.length)) +
          fmt::format("  ({}, {} engine)\n", name(a.status), name(a.engine)) +
          comparison_text(a, asked) + readings_text(a);
  } else if (a.searched_up_to) {
    out = fmt::format("not up to L = {} ({} engine); at that length\n", brief(*a.searched_up_to),
                      name(a.engine)) +
          readings_text(a);
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

// How long the search takes depends on the answer, where prompts are sampled: they get longer until
// the error is small enough. Without sampling D is looked at on a whole grid.
DryRun estimate(const Problem& problem, const StudyOptions& sweep, Metric metric) {
  constexpr std::int64_t kGrid = 28, kBisection = 20, kMiddle = 10000;
  StudyOptions one = sweep;
  one.lengths = {kMiddle};
  one.metrics = {metric};
  const Study study(problem, one);
  DryRun plan{.verb = "length",
              .what = "a search for the shortest length",
              .engine = study.choice().reason,
              .unit = "lengths",
              .count = kGrid + kBisection};
  if (study.choice().engine == Engine::exact) {
    const Cells<PointRow> cells = study.cells();
    const double seconds = cpu_seconds([&] { (void)cells.compute(0); });
    plan.cpu_seconds =
        seconds * static_cast<double>(cells.keys.size()) * static_cast<double>(plan.count);
    plan.basis = "measured at one length";
  } else {
    plan.basis = "prompts are sampled, and they get longer until the error is small enough";
  }
  return plan;
}

void execute(const Globals& globals, const Flags& flags) {
  const Tolerance asked = tolerance_of(flags);
  Config config = globals.load_config(flags.preset);
  set_tokens(config, flags.tokens);
  const Problem problem = read_problem(config.root());
  const StudyOptions sweep = read_sweep(config.root(), globals.seed);
  allow_preset(config.root());
  config.check_all_used();
  LengthOptions options;
  options.eps = asked.eps;
  options.metric = parse_enum<Metric>(flags.metric);
  options.relative = asked.relative;
  if (flags.quantile > 0) options.quantile = flags.quantile;
  options.engine = sweep.engine;
  options.queries = sweep.queries;
  options.replicates = sweep.replicates;
  options.seed = globals.seed;
  if (globals.dry_run) {
    print_dry_run(globals, estimate(problem, sweep, options.metric));
    return;
  }
  const LengthAnswer answer = shortest_length(problem, options);
  const std::int64_t bound = flags.quantile > 0 || !answer.length || !problem.is_plain()
                                 ? 0
                                 : bound_answer(problem, answer, options);
  Json document = to_json(answer);
  document["bound"] = bound > 0 ? Json(bound) : Json();
  document["metric"] = flags.metric;
  document["relative"] = asked.relative;
  document["error"] = asked.error ? Json(*asked.error) : Json();
  document["quantile"] = flags.quantile > 0 ? Json(flags.quantile) : Json();
  document["seed"] = globals.seed;
  print_result(globals, "length", document, answer_text(answer, asked, bound));
}

}  // namespace

void add_length(const Command& app, Globals& globals) {
  const Command verb = add_verb(
      app, globals, "length", "The shortest prompt whose error is small enough",
      "--error 1% bounds the root-mean-square error relative to the limit, --eps the mean-square\n"
      "error D(L) itself. Every answer states both readings: 1 % as a root is 0.01 % as a square.\n"
      "Reads [measure] or --tokens, [attention], [query] (N(0,I) unless given) and engine, "
      "queries,\n"
      "replicates of [sweep].\n"
      "Examples:\n"
      "  esscher length --error 1% --set measure.type=gaussian --set measure.dim=4 --set "
      "attention.U=0.3\n"
      "  esscher length --eps 0.01 --relative --metric grad_u --config exp.toml --json\n"
      "  esscher length --error 5% --quantile 0.95 --config exp.toml\n"
      "  esscher length --eps 0.05 --tokens tokens.npy --set attention.U=0.5",
      {.dry_run = true});
  const auto flags = std::make_shared<Flags>();
  verb.option("--error", flags->error_text,
              "largest root-mean-square error allowed, as a part of the limit: 1% or 0.01")
      .type_name("E%");
  verb.option("--eps", flags->eps, "largest mean-square error allowed").type_name("E").positive();
  add_tokens(verb, flags->tokens);
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
