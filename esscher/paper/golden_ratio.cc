// E over queries of E sum omega^2: scores have the deviation sqrt(lambda) |g|, g standard normal.
#include <cmath>
#include <numbers>

#include "esscher/base/number_text.h"
#include "esscher/concentration/constant.h"
#include "esscher/estimate/moments.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/temperature.h"
#include "esscher/random/stream.h"
#include "esscher/universal/participation.h"

namespace esscher::paper {
namespace {

// ---- setting

constexpr double kLambdas[] = {0.25, 1, 2, 4};

std::vector<double> decades() { return {3, 6, 10, 15, 25, 40, 60, 90, 130, 180, 200, 250}; }
// The local exponent is taken between the last two.

std::int64_t draws(const Options& options) { return options.pick(20000, 200000, 2000000); }

// 2 int_0^inf phi(g) E H(n, sqrt(lambda) g) dg by the trapezoidal rule; the integrand is even and
// smooth, and vanishes at the end.
double average(double lambda, double log_n) {
  constexpr double kStep = 0.25;  // the integrand is no narrower than 0.45
  const double n = std::exp(log_n), end = std::sqrt(2 * log_n) + 12;
  double sum = 0;
  for (double g = 0; g < end; g += kStep) {
    const double weight = (g == 0 ? 1 : 2) * std::exp(-0.5 * g * g);
    sum += weight * mean_weight_square(n, std::sqrt(lambda) * g);
  }
  return kStep * sum / std::sqrt(2 * std::numbers::pi);
}

// Laplace's method. Up to lambda = 1/2 averages rule: (1 - 2 lambda)^{-1/2} / n. Beyond, the
// intermediate regime at c^2 = 2 sqrt(lambda/(4 + lambda)), where the exponent has the curvature
// 4 (1/lambda + 1/4).
double formula(double lambda, double log_n) {
  if (lambda < 0.5) return std::exp(-log_n) / std::sqrt(1 - 2 * lambda);
  const double c = std::sqrt(2 * std::sqrt(lambda / (4 + lambda))), k = 0.5 + 1 / (c * c);
  const double curvature = 4 / lambda + 1;
  return std::exp(-predicted_exponent(lambda) * log_n) * std::tgamma(2 - k) * std::tgamma(k) /
         (std::numbers::pi * c * std::sqrt(lambda)) *
         std::sqrt(2 * std::numbers::pi / (curvature * log_n));
}

// ---- rows and cells

struct GoldenRow {
  double lambda = 0;
  double decades = 0;
  double H = 0;
  double H_error = 0;
  std::optional<double> formula = {};
  std::optional<double> exact = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("lambda", row.lambda, "", "variance of the scores over queries");
    column("decades", row.decades, "", "log10 of the prompt length");
    column("H", row.H, "", "E sum omega^2");
    column("H_error", row.H_error, "", "its standard error; 0 if it is exact");
    column("formula", row.formula, "", "asymptotic formula of the regime");
    column("exact", row.exact, "", "the integral that simulated prompts are compared with");
  }
};

std::vector<GoldenRow> exact_rows(double lambda) {
  std::vector<GoldenRow> rows;
  for (const double decade : decades()) {
    const double x = decade * std::log(10.0);
    rows.push_back({.lambda = lambda,
                    .decades = decade,
                    .H = average(lambda, x),
                    .formula = formula(lambda, x)});
  }
  return rows;
}

std::vector<GoldenRow> sampled_rows(double lambda, std::int64_t draws, const Stream& stream) {
  constexpr int kTokens = 100;
  std::vector<double> s(kTokens + 1);
  Moments moments;
  for (std::int64_t i = 0; i < draws; ++i) {
    stream.split(static_cast<std::uint64_t>(i)).fill_normal(0, s);
    const double tau = std::sqrt(lambda) * std::abs(s.back());
    double one = 0, two = 0;
    for (int l = 0; l < kTokens; ++l) {
      const double e = std::exp(tau * s[static_cast<std::size_t>(l)]);
      one += e;
      two += e * e;
    }
    moments.add(two / (one * one));
  }
  return {{.lambda = lambda,
           .decades = std::log10(kTokens),
           .H = moments.mean(),
           .H_error = moments.std_error(),
           .exact = average(lambda, std::log(kTokens))}};
}

Cells<GoldenRow> cells(const Options& options) {
  CellList<GoldenRow> list;
  std::uint64_t cell = 0;
  for (const double lambda : kLambdas) {
    const std::string key = "golden-ratio/lambda=" + brief(lambda);
    list.add(key + "/exact", [lambda] { return exact_rows(lambda); });
    list.add(key + "/sampled", [lambda, count = draws(options),
                                stream = Stream(options.seed).split(72).split(cell++)] {
      return sampled_rows(lambda, count, stream);
    });
  }
  return std::move(list).cells();
}

// ---- numbers

std::vector<GoldenNumbers> numbers_of(std::span<const GoldenRow> rows) {
  std::vector<GoldenNumbers> out;
  for (const double lambda : kLambdas) {
    GoldenNumbers n{.lambda = lambda, .gamma = predicted_exponent(lambda)};
    const GoldenRow* before = nullptr;
    for (const GoldenRow& row : rows) {
      if (row.lambda != lambda) continue;
      if (row.exact) {
        n.sampled_ratio = row.H / *row.exact;
        n.sampled_error = row.H_error / *row.exact;
        continue;
      }
      if (before != nullptr) {
        // Beyond 1/2 the formula has a factor (log L)^{-1/2}.
        const double logs = lambda < 0.5 ? 0 : 0.5 * std::log(row.decades / before->decades);
        n.exponent = -(std::log(row.H / before->H) + logs) /
                     ((row.decades - before->decades) * std::log(10.0));
      }
      n.decades = row.decades;
      n.ratio = row.H / row.formula.value();
      before = &row;
    }
    out.push_back(n);
  }
  return out;
}

}  // namespace

// ---- verdict

Checks golden_checks(std::span<const GoldenNumbers> numbers) {
  Checks out;
  for (const GoldenNumbers& n : numbers) {
    const std::string where = "λ = " + brief(n.lambda);
    out.figures.push_back(
        {.what = "E H over its formula, " + where + ", at L = 1e" + brief(n.decades),
         .value = n.ratio,
         .expected = 1,
         .source = Source::closed_form,
         .tolerance = kGoldenTolerance});
    const Judged exponent{.what = "the exponent of E H, " + where,
                          .value = n.exponent,
                          .expected = n.gamma,
                          .source = Source::exponent,
                          .tolerance = kGoldenExponentTolerance};
    out.figures.push_back(exponent);
    out.figures.push_back({.what = "simulated E H over the exact one, " + where,
                           .value = n.sampled_ratio,
                           .error = n.sampled_error,
                           .expected = 1,
                           .source = Source::closed_form});
    Judged control = exponent;
    control.what = "the exponent at " + where + " against 1/2, that of Monte Carlo errors";
    control.expected = 0.5;
    out.controls.push_back(control);
  }
  return out;
}

Verdict judge_golden(std::span<const GoldenNumbers> numbers) {
  std::string golden;
  for (const GoldenNumbers& n : numbers) {
    if (n.lambda == 1) golden = brief(n.exponent, 5);
  }
  return verdict_of(golden_checks(numbers), VerdictStatus::holds,
                    "At λ = 1 the exponent is " + golden + " at L = 1e" +
                        brief(numbers.empty() ? 0 : numbers.front().decades) +
                        ", the golden ratio 0.61803 minus what is left of logarithms; the other λ "
                        "follow (√(1+4/λ) − 1)/2.");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string lambda = id("λ");
  return {math(
      sub(fn("E"), id("z")) + id("H") + op("∼") + id("C") +
      frac(sup(id("L"), op("−") + id("γ")), root(fn("log") + id("L"))) + and_also() + id("γ") +
      op("=") +
      frac(root(num("1") + op("+") + num("4") + op("/") + lambda) + op("−") + num("1"), num("2")) +
      and_also() + lambda + op(">") + num("1/2"))};
}

std::map<std::string, Sheet> curves(std::span<const GoldenRow> rows) {
  Sheet exact{.columns = {"decades", "series", "value"}, .rows = {}};
  Sheet predicted{.columns = {"decades", "series", "value"}, .rows = {}};
  for (const GoldenRow& row : rows) {
    if (row.exact || row.decades > 60) continue;
    const std::string series = "λ = " + brief(row.lambda);
    exact.add(row.decades, series, row.H);
    predicted.add(row.decades, series, row.formula.value());
  }
  return {{"golden", std::move(exact)}, {"golden_predicted", std::move(predicted)}};
}

SectionReport report(const Options&, std::span<const GoldenRow> rows) {
  const std::vector<GoldenNumbers> numbers = numbers_of(rows);
  Section section;
  section.statement =
      "Queries differ, and so do the deviations of their scores: √λ|g| with g standard normal. The "
      "mean of Σω² over queries and prompts falls like L^{−γ}/√(log L) with "
      "γ = (√(1+4/λ) − 1)/2 beyond λ = 1/2, which is the golden ratio 0.618 at λ = 1, and like 1/L "
      "below: rare queries with a dominant token slow the average down.";
  section.verdict = judge_golden(numbers);
  section.text =
      "The exponent is the smallest of c²/(2λ) + (1/c − c/2)²/2, what a query with deviation "
      "c√(log L) costs plus what it brings (Laplace's method). The constant of the formula is "
      "judged as well.";
  section.formulas = formulas();
  section.figures = {
      {.id = "golden",
       .chart = CurveChart{.data = "golden",
                           .x = {.column = "decades", .title = "log₁₀ of the prompt length"},
                           .y = {.column = "value", .title = "E Σω² over queries", .log = true},
                           .series = "series",
                           .reference_data = "golden_predicted",
                           .reference_title = "asymptotic formula"},
       .caption =
           "Mean of Σω² over queries and prompts against the logarithm of the prompt length, "
           "exact, and its asymptotic formula.",
       .read = true}};
  section.tables = {judged_table(golden_checks(numbers))};
  StatedHypothesis range{.text = "Scores of a query are independent N(0, λg²), g ~ N(0, 1)."};
  for (const GoldenNumbers& n : numbers) {
    range.values.emplace_back("gamma, lambda = " + brief(n.lambda), n.gamma);
  }
  return {.section = std::move(section),
          .datasets = curves(rows),
          .hypotheses = {range},
          .checks = golden_checks(numbers)};
}

}  // namespace

Statement golden_ratio() {
  return make_statement<GoldenRow>("golden-ratio", "Averaged over queries: the golden ratio", cells,
                                   report);
}

}  // namespace esscher::paper
