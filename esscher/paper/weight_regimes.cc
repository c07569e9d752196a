// The four regimes of E H, H = sum omega^2, for Gaussian scores of deviation tau = c sqrt(log L).
#include <cmath>
#include <numbers>

#include "esscher/base/number_text.h"
#include "esscher/estimate/moments.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/temperature.h"
#include "esscher/random/stream.h"
#include "esscher/scaling/crossover.h"
#include "esscher/scaling/scaling.h"
#include "esscher/universal/participation.h"

namespace esscher::paper {
namespace {

// ---- setting

constexpr double kTwo = std::numbers::sqrt2;

struct Case {
  double c;
  const char* regime;
};
constexpr Case kCases[] = {{0.4, "averaging"},    {0.6, "averaging"}, {1.0, "intermediate"},
                           {1.2, "intermediate"}, {kTwo, "critical"}, {2.0, "frozen"},
                           {3.0, "frozen"}};

std::vector<double> decades() { return {2, 3, 4, 6, 8, 11, 15, 20, 30, 45, 60, 90, 130, 180, 250}; }

std::int64_t draws(const Options& options) { return options.pick(4000, 20000, 200000); }

Phase phase_of(const std::string& regime) {
  if (regime == "averaging") return Phase::averaging;
  return regime == "intermediate" ? Phase::intermediate : Phase::frozen;
}

// The formula of a regime at this place, whether it holds there or not.
double formula(const std::string& regime, double tau, double log_L) {
  if (regime == "critical") return 1 / std::sqrt(std::numbers::pi * log_L);
  return predicted_weight_square(ScoreModel::gaussian(tau), 1, log_L, phase_of(regime));
}

// The formula that another regime has there: averages where one token rules, the saddle point at its
// end (half of what is true at c = sqrt 2), and a law of the weights with another parameter.
double false_formula(const std::string& regime, double c, double tau, double log_L) {
  if (regime == "averaging") return std::exp(0.5 * tau * tau - log_L);
  if (regime == "intermediate") return formula("averaging", tau, log_L);
  if (regime == "critical") return 0.5 * formula("critical", tau, log_L);
  return 1 - 1 / c;
}

// ---- rows and cells

struct RegimeRow {
  double c = 0;
  std::string regime = {};
  double decades = 0;
  double tau = 0;
  double H = 0;
  double H_error = 0;
  std::optional<double> formula = {}, crossover = {}, false_formula = {};
  std::optional<double> exact = {};  // beside simulated prompts

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("c", row.c, "", "deviation of the scores over sqrt(log L)");
    column("regime", row.regime, "", "averaging, intermediate, critical or frozen");
    column("decades", row.decades, "", "log10 of the prompt length");
    column("tau", row.tau, "", "deviation of the scores");
    column("H", row.H, "", "E sum omega^2");
    column("H_error", row.H_error, "", "its standard error; 0 if it is exact");
    column("formula", row.formula, "", "asymptotic formula of the regime");
    column("crossover", row.crossover, "", "one formula for all regimes");
    column("false_formula", row.false_formula, "", "a formula that does not hold there");
    column("exact", row.exact, "", "the integral that simulated prompts are compared with");
  }
};

std::vector<RegimeRow> exact_rows(const Case& at) {
  std::vector<RegimeRow> rows;
  for (const double decade : decades()) {
    const double x = decade * std::log(10.0), tau = at.c * std::sqrt(x);
    rows.push_back({.c = at.c,
                    .regime = at.regime,
                    .decades = decade,
                    .tau = tau,
                    .H = mean_weight_square(std::exp(x), tau),
                    .formula = formula(at.regime, tau, x),
                    .crossover = crossover(ScoreModel::gaussian(tau), 1, x).H,
                    .false_formula = false_formula(at.regime, at.c, tau, x)});
  }
  return rows;
}

// All scores of each prompt are drawn.
std::vector<RegimeRow> sampled_rows(const Case& at, std::int64_t draws, const Stream& stream) {
  const auto n = static_cast<double>(kRegimeSampled);
  const double tau = at.c * std::sqrt(std::log(n));
  std::vector<double> s(static_cast<std::size_t>(kRegimeSampled));
  Moments moments;
  for (std::int64_t i = 0; i < draws; ++i) {
    stream.split(static_cast<std::uint64_t>(i)).fill_normal(0, s);
    double one = 0, two = 0;
    for (const double x : s) {
      const double e = std::exp(tau * (x - 6));  // no normal among a thousand overflows this
      one += e;
      two += e * e;
    }
    moments.add(two / (one * one));
  }
  return {{.c = at.c,
           .regime = at.regime,
           .decades = std::log10(n),
           .tau = tau,
           .H = moments.mean(),
           .H_error = moments.std_error(),
           .exact = mean_weight_square(n, tau)}};
}

Cells<RegimeRow> cells(const Options& options) {
  CellList<RegimeRow> list;
  std::uint64_t cell = 0;
  for (const Case& at : kCases) {
    const std::string key = "regimes/c=" + brief(at.c);
    list.add(key + "/exact", [at] { return exact_rows(at); });
    list.add(key + "/sampled",
             [at, count = draws(options), stream = Stream(options.seed).split(71).split(cell++)] {
               return sampled_rows(at, count, stream);
             });
  }
  return std::move(list).cells();
}

// ---- numbers

std::vector<RegimeNumbers> numbers_of(std::span<const RegimeRow> rows) {
  std::vector<RegimeNumbers> out;
  for (const Case& at : kCases) {
    RegimeNumbers n{.c = at.c, .regime = at.regime};
    for (const RegimeRow& row : rows) {
      if (row.c != at.c) continue;
      if (row.exact) {
        n.sampled_ratio = row.H / *row.exact;
        n.sampled_error = row.H_error / *row.exact;
        continue;
      }
      const double combined = row.H / row.crossover.value();
      if (n.decades == 0 || std::abs(combined - 1) > std::abs(n.combined - 1))
        n.combined = combined;
      if (row.decades <= n.decades) continue;
      n.decades = row.decades;
      n.ratio = row.H / row.formula.value();
      n.other = row.H / row.false_formula.value();
    }
    out.push_back(n);
  }
  return out;
}

}  // namespace

// ---- verdict

Checks regime_checks(std::span<const RegimeNumbers> numbers) {
  Checks out;
  for (const RegimeNumbers& n : numbers) {
    const std::string where = "c = " + brief(n.c);
    const Judged ratio{.what = "E H over the " + n.regime + " formula, " + where + ", at L = 1e" +
                               brief(n.decades),
                       .value = n.ratio,
                       .expected = 1,
                       .source = Source::closed_form,
                       .tolerance = kRegimeTolerance};
    out.figures.push_back(ratio);
    out.figures.push_back(
        {.what = "simulated E H over the exact one, " + where + ", at L = " + brief(kRegimeSampled),
         .value = n.sampled_ratio,
         .error = n.sampled_error,
         .expected = 1,
         .source = Source::closed_form});
    out.figures.push_back({.what = "E H over the one formula for all regimes, " + where +
                                   ", where it is furthest from 1",
                           .value = n.combined,
                           .expected = 1,
                           .source = Source::closed_form,
                           .tolerance = kCombinedTolerance});
    Judged control = ratio;
    control.what = "E H over a formula that is not that of its regime, " + where;
    control.value = n.other;
    out.controls.push_back(control);
  }
  return out;
}

Verdict judge_regimes(std::span<const RegimeNumbers> numbers) {
  double worst = 0, decades = 0;
  for (const RegimeNumbers& n : numbers) {
    worst = worse(worst, std::abs(n.ratio - 1));
    decades = std::max(decades, n.decades);
  }
  return verdict_of(
      regime_checks(numbers), VerdictStatus::holds,
      "At L = 1e" + brief(decades) + " the exact mean of Σω² is within " + brief(100 * worst, 2) +
          " % of the formula of its regime for every c, and at L = " + brief(kRegimeSampled) +
          " it is the mean over simulated prompts.");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string c2 = sup(id("c"), num("2")), H = fn("E") + id("H");
  return {math(H + op("∼") + sup(id("L"), c2 + op("−") + num("1")) + text("for") + c2 + op("<") +
               num("2/3")),
          math(H + op("∼") +
               frac(id("L") + sup(id("e"), op("−") + sup(id("g"), num("2")) + op("/") + num("2")),
                    id("τ") + root(num("2") + id("π"))) +
               fn("Γ") + paren(num("2") + op("−") + id("k")) + fn("Γ") + paren(id("k")) +
               and_also() + id("g") + op("=") +
               frac(fn("log") + id("L") + op("+") + sup(id("τ"), num("2")) + op("/") + num("2"),
                    id("τ")) +
               and_also() + id("k") + op("=") + num("1/2") + op("+") + num("1") + op("/") + c2 +
               text("for") + num("2/3") + op("<") + c2 + op("<") + num("2")),
          math(H + op("∼") + num("1") + op("/") + root(id("π") + fn("log") + id("L")) + text("at") +
               c2 + op("=") + num("2") + and_also() + H + op("→") + num("1") + op("−") +
               root(num("2")) + op("/") + id("c") + text("for") + c2 + op(">") + num("2"))};
}

std::map<std::string, Sheet> curves(std::span<const RegimeRow> rows) {
  Sheet exact{.columns = {"decades", "series", "value"}, .rows = {}};
  Sheet ratio{.columns = {"decades", "series", "value"}, .rows = {}};
  Sheet all{.columns = {"decades", "series", "value"}, .rows = {}};
  for (const RegimeRow& row : rows) {
    if (row.exact) continue;
    const std::string series = "c = " + brief(row.c);
    exact.add(row.decades, series, row.H);
    ratio.add(row.decades, series, row.H / row.formula.value());
    all.add(row.decades, series, row.H / row.crossover.value());
  }
  return {{"regimes", std::move(exact)},
          {"regime_ratios", std::move(ratio)},
          {"regime_crossover", std::move(all)}};
}

std::vector<Figure> figures() {
  const Axis x{.column = "decades", .title = "log₁₀ of the prompt length", .log = true};
  return {
      {.id = "regimes",
       .chart = CurveChart{.data = "regimes",
                           .x = x,
                           .y = {.column = "value", .title = "E Σω²", .log = true, .min = 1e-30},
                           .series = "series"},
       .caption = "Mean of Σω² against the logarithm of the prompt length, exact. Above "
                  "c = √2 it stays, below it falls like a power of L.",
       .read = true},
      {.id = "regime_ratios",
       .chart = CurveChart{.data = "regime_ratios",
                           .x = x,
                           .y = {.column = "value", .title = "exact / formula"},
                           .series = "series",
                           .reference_data = "regime_crossover",
                           .reference_title = "over the formula for all regimes"},
       .caption = "Exact over the formula of its regime; judged is the end, at L = 1e250. Dashed: "
                  "over the one formula for all regimes, which is judged at the length where it is "
                  "furthest from 1.",
       .read = true}};
}

SectionReport report(const Options&, std::span<const RegimeRow> rows) {
  const std::vector<RegimeNumbers> numbers = numbers_of(rows);
  Section section;
  section.statement =
      "Among L Gaussian scores of deviation τ = c√(log L), the mean of Σω², one over the effective "
      "number of tokens, has four regimes: below c² = 2/3 it is that of an average, up to c² = 2 "
      "it "
      "is carried by rare prompts with one dominant token, at c² = 2 it falls like one over the "
      "root of log L, and beyond it tends to 1 − √2/c: a few tokens carry the weight of any "
      "prompt.";
  section.verdict = judge_regimes(numbers);
  section.text =
      "Scores grow like √(log L) where the factor on them does. A constant factor is averaging "
      "from some length on, a factor like log L freezes. Controls are formulas of other regimes at "
      "the same places; at c = √2 that is the saddle point of the regime below, which is half of "
      "the truth.";
  section.formulas = formulas();
  section.figures = figures();
  section.tables = {judged_table(regime_checks(numbers))};
  StatedHypothesis range{
      .text =
          "Scores are independent N(0, τ²) with τ = c√(log L), L from 10² to 1e250, c on "
          "both sides of √(2/3) and √2."};
  for (const Case& at : kCases) range.values.emplace_back("c, " + std::string(at.regime), at.c);
  return {.section = std::move(section),
          .datasets = curves(rows),
          .hypotheses = {range},
          .checks = regime_checks(numbers)};
}

}  // namespace

Statement weight_regimes() {
  return make_statement<RegimeRow>("regimes", "Four regimes of the softmax weights", cells, report);
}

}  // namespace esscher::paper
