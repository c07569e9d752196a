// Theorem 5.1: in-context linear regression trained by gradient flow reaches the Bayes risk up to
// eps once prompts are longer than L(eps).
#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/base/number_text.h"
#include "esscher/estimate/interval.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/shared_training.h"
#include "esscher/paper/statements.h"
#include "esscher/paper/verdicts.h"
#include "esscher/risk/bayes.h"
#include "esscher/risk/closed_form.h"
#include "esscher/training/start.h"

namespace esscher::paper {
namespace {

// ---- setting

constexpr const char* kSetting = "linear regression";
constexpr std::int64_t kLongest = 1000000;

std::vector<std::int64_t> lengths(const Options& options) {
  if (options.size == Size::tiny) return {10, 100, 1000};
  return {10, 20, 50, 100, 200, 500, 1000, 10000, 100000, 1000000};
}

std::vector<double> eps_list(const Options& options) {
  if (options.size == Size::tiny) return {0.1};
  return {0.3, 0.1, 0.03, 0.01};
}

// ---- cells

TrainingRow bayes_row(const Options& options, const LinearRegressionTask& task, Length L) {
  const Estimate bayes = bayes_risk(task, L, 2000, Stream(options.seed).split(27));
  return {.kind = TrainingKind::bayes, .L = L, .risk = bayes.value, .std_error = bayes.std_error};
}

// |bA - Sigma^-1| / |Sigma^-1| of the start, which has not learned anything.
TrainingRow start_row(const TwinSetup& setup, const LinearRegressionTask& task) {
  const Readout start = setup.space.readout(setup.theta0);
  return {.kind = TrainingKind::closed,
          .setting = "start",
          .L = Length::infinity(),
          .risk = limit_risk(task, start),
          .limit_error = limit_error(task, start, Length::infinity())};
}

// L(eps) with its interval, as half a width in std_error.
TrainingRow eps_row(const TwinSetup& s, const LinearRegressionTask& task, double eps) {
  const LengthForRisk found =
      length_for_risk(s, ModelKind::softmax, task.irreducible_risk(), eps, kLongest);
  TrainingRow row{.kind = TrainingKind::eps, .risk = found.risk, .eps = eps};
  if (found.length == 0) return row;
  row.length = found.length;
  row.risk_before = found.risk_before;
  if (found.low && found.high) {
    row.std_error = static_cast<double>(*found.high - *found.low) / (2 * normal_quantile());
  }
  return row;
}

Cells<TrainingRow> cells(const Options& options) {
  const LinearRegressionTask task = regression(options);
  const TwinSetup setup = twin_setup(options, task);
  CellList<TrainingRow> list;
  list.add("theorem-5.1/L=inf", [options, task, setup] {
    return std::vector{reference_row(kSetting, setup), bayes_row(options, task, Length::infinity()),
                       start_row(setup, task)};
  });
  for (const std::int64_t L : lengths(options)) {
    list.add("theorem-5.1/L=" + std::to_string(L), [options, task, setup, L] {
      const TwinRows twin = twin_rows(kSetting, setup, ModelKind::softmax, L);
      std::vector<TrainingRow> rows{twin.end};
      rows.insert(rows.end(), twin.path.begin(), twin.path.end());
      rows.push_back(bayes_row(options, task, L));
      return rows;
    });
  }
  for (const double eps : eps_list(options)) {
    list.add("theorem-5.1/eps=" + brief(eps),
             [task, setup, eps] { return std::vector{eps_row(setup, task, eps)}; });
  }
  return std::move(list).cells();
}

// ---- numbers

std::vector<TrainingRow> rows_of_kind(std::span<const TrainingRow> rows, TrainingKind kind) {
  std::vector<TrainingRow> out;
  for (const TrainingRow& row : rows) {
    if (row.kind == kind) out.push_back(row);
  }
  return out;
}

double bayes_at(std::span<const TrainingRow> rows, Length L) {
  for (const TrainingRow& row : rows) {
    if (row.kind == TrainingKind::bayes && row.L == L) return row.risk;
  }
  return std::nan("");
}

TrainingRow reference_of(std::span<const TrainingRow> rows) {
  return rows_of_kind(rows, TrainingKind::reference).at(0);
}

Theorem51Numbers numbers_of(const Options& options, std::span<const TrainingRow> rows) {
  const TrainingRow reference = reference_of(rows);
  const std::string dimension = "d=" + std::to_string(regression(options).dim);
  Theorem51Numbers n{.bayes = bayes_at(rows, Length::infinity()),
                     .reference_risk = reference.risk,
                     .product_error = reference.limit_error.value()};
  for (const TrainingRow& row : rows_of_kind(rows, TrainingKind::closed)) {
    n.start_error = row.limit_error.value();
  }
  for (const TrainingRow& row : rows_of_kind(rows, TrainingKind::twin)) {
    const std::int64_t L = row.L.value().count();
    const IndependentValue& known = independent("softmax " + dimension, 0, L);
    n.trained.push_back({.L = L,
                         .excess = row.risk - n.bayes,
                         .error = row.std_error.value(),
                         .expected = known.value,
                         .expected_error = known.error});
    n.bayes_at.push_back(bayes_at(rows, row.L.value()));
  }
  for (const TrainingRow& row : rows_of_kind(rows, TrainingKind::eps)) {
    const double eps = row.eps.value();
    n.lengths.push_back({.eps = eps,
                         .length = row.length,
                         .error = row.std_error.value_or(std::nan("")),
                         .expected = independent("length " + dimension, eps, 0)});
  }
  return n;
}

// "L(0.1) = 172, .."
std::string eps_text(const Theorem51Numbers& n) {
  std::string text;
  for (const LengthForEps& e : n.lengths) {
    text += (text.empty() ? "L(" : ", L(") + brief(e.eps) + ") = " + brief(e.length.value_or(0));
  }
  return text;
}

// The factor 1 + |bA - Sigma^-1| / |Sigma^-1| by which the product is off.
Judged product_figure(double error) {
  return {.what = "the learned product bA over Σ⁻¹ at L = ∞",
          .value = 1 + error,
          .expected = 1,
          .source = Source::closed_form,
          .tolerance = kProductTolerance};
}

Judged length_figure(const LengthForEps& e) {
  const auto L = static_cast<double>(e.length.value_or(0));
  return {.what = "L(ε) for ε = " + brief(e.eps),
          .value = L,
          .error = e.error,
          .expected = std::ceil(e.expected.value),
          .expected_error = e.expected.error,
          .source = Source::independent,
          .tolerance = kFlowTolerance};
}

}  // namespace

// ---- verdict

Checks theorem_5_1_checks(const Theorem51Numbers& n) {
  Checks out;
  out.figures.push_back(product_figure(n.product_error));
  Judged start = product_figure(n.start_error);
  start.what = "the product bA of the start over Σ⁻¹";
  out.controls.push_back(std::move(start));
  out.conditions.push_back({.what = "the infinite-prompt flow ends " +
                                    brief(n.reference_risk - n.bayes) + " above the Bayes risk",
                            .holds = std::abs(n.reference_risk - n.bayes) <= 1e-8});
  add_ends(out, "the risk above Bayes", n.trained, Source::independent);
  for (std::size_t i = 0; i < n.trained.size(); ++i) {
    const EndPoint& at = n.trained[i];
    out.conditions.push_back(
        {.what = "the limiting risk at L = " + brief(at.L) +
                 " is below the Bayes risk, which is impossible",
         .holds = at.excess + n.bayes >= n.bayes_at.at(i) - kJudgedErrors * at.error - 1e-9});
  }
  for (const LengthForEps& e : n.lengths) out.figures.push_back(length_figure(e));
  return out;
}

Verdict judge_theorem_5_1(const Theorem51Numbers& n) {
  if (n.trained.empty()) return fails("no flow at finite length");
  return verdict_of(theorem_5_1_checks(n), VerdictStatus::holds,
                    "The risk above Bayes falls to " + brief(n.trained.back().excess) +
                        " at L = " + brief(n.trained.back().L) + ": " + eps_text(n) +
                        ". At L = ∞ the parameters end " + brief(n.product_error) +
                        " (relative) from the closed form.");
}

std::string paths_caption(double reference_risk, double floor) {
  return "Risk along training, by prompt length. A curve levels off at its limiting risk; that of "
         "the infinite prompt falls to " +
         brief(reference_risk, 2) + (reference_risk < floor ? ", below the axis." : ".");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string sigma2 = sup(id("Σ"), op("−") + num("2"));
  return {
      math(limit_in_time() + sub(id("R"), id("L")) + paren(sub(id("θ"), id("L")) + paren(id("t"))) +
           op("≤") + sub(id("R"), id("Bayes")) + op("+") + id("ε") + for_long_prompts()),
      math(id("b") + op("→") + sup(paren(fn("tr") + sigma2), num("1/4")) + and_also() + id("A") +
           op("→") + sup(id("b"), op("−") + num("1")) + sup(id("Σ"), op("−") + num("1")) +
           text("at") + id("L") + op("=") + op("∞"))};
}

std::vector<StatedHypothesis> hypotheses(const LinearRegressionTask& task,
                                         const Theorem51Numbers& n, const TrainingRow& reference) {
  const double alpha = start_alpha(task), bound = balanced_start_bound(task);
  const double t = reference.t.value(), defect = reference.energy_defect.value();
  return {
      {.text = "Features are Gaussian with the invertible covariance 0.5^{|i−j|} in dimension " +
               std::to_string(task.dim) +
               "; task vectors have variance 1 and labels no noise, so that the Bayes risk is " +
               brief(n.bayes) + " once L ≥ " + std::to_string(task.dim) + ".",
       .values = {{"dimension", static_cast<double>(task.dim)}, {"Bayes risk", n.bayes}}},
      {.text = "The start is balanced with 0 < α < √2/(d^{1/4}‖Σ‖): α = " + brief(alpha) +
               " and the bound is " + brief(bound) + ".",
       .values = {{"alpha", alpha}, {"bound", bound}},
       .holds = 0 < alpha && alpha < bound},
      {.text = "Flows run until they are stationary: that of the infinite prompt at t = " +
               brief(t) + ", with an energy defect of " + brief(defect) + ".",
       .values = {{"t", t}, {"energy defect", defect}},
       .holds = reference.status == FlowStatus::stationary}};
}

Sheet limit_sheet(std::span<const TrainingRow> rows, double bayes) {
  Sheet sheet{.columns = {"L", "excess", "low", "high", "distance"}, .rows = {}};
  for (const TrainingRow& row : rows_of_kind(rows, TrainingKind::twin)) {
    const double excess = row.risk - bayes, error = row.std_error.value();
    sheet.add(row.L.value().count(), excess, excess - 2 * error, excess + 2 * error,
              row.limit_error.value());
  }
  return sheet;
}

// Risk along training, and that of the infinite prompt as one more curve.
Sheet path_sheet(std::span<const TrainingRow> rows, Length longest) {
  Sheet sheet{.columns = {"prompt", "t", "risk"}, .rows = {}};
  for (const TrainingRow& row : rows_of_kind(rows, TrainingKind::path)) {
    if (row.t.value() <= 0) continue;
    sheet.add("L = " + brief(row.L.value().count()), row.t, row.risk);
    if (row.L == longest) sheet.add("L = ∞", row.t, row.reference_risk);
  }
  return sheet;
}

// The smallest risk that a curve of a finite length reaches.
double smallest_risk(std::span<const TrainingRow> rows) {
  double out = std::numeric_limits<double>::infinity();
  for (const TrainingRow& row : rows_of_kind(rows, TrainingKind::path)) {
    if (row.risk > 0) out = std::min(out, row.risk);
  }
  return out;
}

std::vector<Figure> figures(std::span<const TrainingRow> rows, double reference_risk) {
  const Axis length{.column = "L", .title = "prompt length L", .log = true};
  return {
      {.id = "limit",
       .chart = CurveChart{.data = "t51_curves",
                           .x = length,
                           .y = {.column = "excess", .title = "risk above Bayes", .log = true},
                           .low = "low",
                           .high = "high"},
       .caption = "Risk above Bayes at the end of training against prompt length.",
       .read = true},
      {.id = "distance",
       .chart = CurveChart{.data = "t51_curves",
                           .x = length,
                           .y = {.column = "distance",
                                 .title = "relative distance of bA from Σ⁻¹",
                                 .log = true}},
       .caption = "Distance of the learned product bA from the limit Σ⁻¹ of the infinite prompt, "
                  "relative to it, at the end of training.",
       .read = true},
      {.id = "paths",
       .chart = CurveChart{.data = "t51_paths",
                           .x = {.column = "t", .title = "training time t", .log = true},
                           .y = {.column = "risk",
                                 .title = "risk",
                                 .log = true,
                                 .min = smallest_risk(rows) / 10},
                           .series = "prompt",
                           .points = false},
       .caption = paths_caption(reference_risk, smallest_risk(rows) / 10)}};
}

std::vector<PageTable> tables(std::span<const TrainingRow> rows) {
  Sheet ends{.columns = {"L", "limiting risk", "standard error", "Bayes risk at L",
                         "|bA − Σ⁻¹|, relative", "distance to infinite-prompt parameters", "flow"},
             .rows = {}};
  for (const TrainingRow& row : rows_of_kind(rows, TrainingKind::twin)) {
    ends.add(row.L.value().count(), row.risk, row.std_error, bayes_at(rows, row.L.value()),
             row.limit_error, row.distance, row.status);
  }
  Sheet found{.columns = {"ε", "L(ε)", "its error", "risk at L(ε)", "risk at L(ε) − 1"},
              .rows = {}};
  for (const TrainingRow& row : rows_of_kind(rows, TrainingKind::eps)) {
    found.add(row.eps, row.length, row.std_error, row.risk, row.risk_before);
  }
  return {{.title = "End of training", .sheet = std::move(ends)},
          {.title = "How long is long enough: L(ε)", .sheet = std::move(found)}};
}

SectionReport report(const Options& options, std::span<const TrainingRow> rows) {
  const Theorem51Numbers n = numbers_of(options, rows);
  Section section;
  section.statement =
      "Train softmax attention by gradient flow on in-context linear regression, from the "
      "balanced start, with prompts of length L. For every ε there is a length L(ε) beyond which "
      "the risk at the end of training is at most the Bayes risk plus ε. With infinite "
      "prompts the parameters end at a closed form, which is that of linear attention.";
  section.verdict = judge_theorem_5_1(n);
  section.text =
      "Risks are halves of mean squared errors. The finite-L risk and its gradient are averaged "
      "over "
      "tokens without sampling; tasks and queries are quadrature nodes, whose error is stated. "
      "L(ε) "
      "is found by whole flows, on independent sets of nodes that give its error.";
  section.formulas = formulas();
  section.figures = figures(rows, n.reference_risk);
  section.tables = tables(rows);
  section.tables.insert(section.tables.begin(), judged_table(theorem_5_1_checks(n)));
  return {.section = std::move(section),
          .datasets = {{"t51_curves", limit_sheet(rows, n.bayes)},
                       {"t51_paths", path_sheet(rows, lengths(options).back())}},
          .hypotheses = hypotheses(regression(options), n, reference_of(rows)),
          .checks = theorem_5_1_checks(n)};
}

}  // namespace

Statement theorem_5_1() {
  return make_statement<TrainingRow>(
      "theorem-5.1", "Theorem 5.1: softmax attention learns linear regression in context", cells,
      report);
}

}  // namespace esscher::paper
