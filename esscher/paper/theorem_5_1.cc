// Theorem 5.1: in-context linear regression trained by gradient flow reaches the Bayes risk up to
// eps once prompts are longer than L(eps).
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/estimate/smallest_length.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/shared_training.h"
#include "esscher/paper/statements.h"
#include "esscher/paper/verdicts.h"
#include "esscher/risk/bayes.h"
#include "esscher/training/start.h"

namespace esscher::paper {
namespace {

// ---- setting

constexpr const char* kSetting = "linear regression";
constexpr std::int64_t kShortest = 8;  // for L(eps): flows of shorter prompts need not settle
constexpr std::int64_t kLongest = 1000000;

std::vector<std::int64_t> lengths(const Options& options) {
  if (options.size == Size::tiny) return {10, 100, 1000};
  return {5, 10, 20, 50, 100, 200, 500, 1000, 10000, 100000, 1000000};
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

// Risk at the end of training at length L.
double limiting_risk(const TwinSetup& s, std::int64_t L) {
  FlowOptions options = s.flow;
  options.times = {0.0};
  const RiskFunction risk = risk_function(s.task, ModelKind::softmax, L, s.risk);
  return gradient_flow(risk, s.space, s.theta0, options).end().risk;
}

TrainingRow eps_row(const TwinSetup& s, const LinearRegressionTask& task, double eps) {
  const SmallestLength found = smallest_length(
      [&](std::int64_t L) { return limiting_risk(s, L); }, task.irreducible_risk() + eps,
      {.from = kShortest, .to = kLongest, .growth = 2, .narrowing = Narrowing::halves});
  TrainingRow row{
      .kind = TrainingKind::eps, .risk = found.value, .eps = eps, .length = found.length};
  if (!std::isnan(found.before)) row.risk_before = found.before;
  return row;
}

Cells<TrainingRow> cells(const Options& options) {
  const LinearRegressionTask task = regression(options);
  const TwinSetup setup = twin_setup(options, task);
  CellList<TrainingRow> list;
  list.add("theorem-5.1/L=inf", [options, task, setup] {
    return std::vector{reference_row(kSetting, setup),
                       bayes_row(options, task, Length::infinity())};
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

Theorem51Numbers numbers_of(std::span<const TrainingRow> rows) {
  const TrainingRow reference = reference_of(rows);
  Theorem51Numbers n{.bayes = bayes_at(rows, Length::infinity()),
                     .reference_error = reference.limit_error.value(),
                     .shortest = kShortest};
  n.reference_gap = std::abs(reference.risk - n.bayes);
  for (const TrainingRow& row : rows_of_kind(rows, TrainingKind::twin)) {
    n.trained.push_back({.L = row.L.value().count(),
                         .risk = row.risk,
                         .std_error = row.std_error.value(),
                         .bayes = bayes_at(rows, row.L.value())});
  }
  for (const TrainingRow& row : rows_of_kind(rows, TrainingKind::eps)) {
    n.lengths.push_back({.eps = row.eps.value(), .length = row.length});
  }
  return n;
}

// The exponent of risk - bayes over the longer half of the lengths.
double tail_exponent(const Theorem51Numbers& n) {
  std::vector<double> x, y;
  for (std::size_t i = n.trained.size() / 2; i < n.trained.size(); ++i) {
    x.push_back(static_cast<double>(n.trained[i].L));
    y.push_back(n.trained[i].risk - n.bayes);
  }
  return falling_exponent(x, y);
}

// "L(0.1) = 67, .."
std::string eps_text(const Theorem51Numbers& n) {
  std::string text;
  for (const LengthForEps& e : n.lengths) {
    const std::int64_t L = e.length.value_or(0);
    text += (text.empty() ? "L(" : ", L(") + brief(e.eps) + (L == n.shortest ? ") ≤ " : ") = ") +
            brief(L);
  }
  return text;
}

std::string trouble_of(const Theorem51Numbers& n) {
  if (n.trained.empty()) return "no flow at finite length";
  if (!(n.reference_gap <= 1e-8) || !(n.reference_error <= 1e-4)) {
    return "the infinite-prompt flow ends " + brief(n.reference_gap) +
           " above the Bayes risk, parameters " + brief(n.reference_error) +
           " from the closed form";
  }
  const TrainedRisk &first = n.trained.front(), &last = n.trained.back();
  if (!(last.risk - n.bayes < (first.risk - n.bayes) / 10)) {
    return "the limiting risk is " + brief(last.risk - n.bayes) +
           " above Bayes at L = " + brief(last.L) + " and " + brief(first.risk - n.bayes) +
           " at L = " + brief(first.L);
  }
  for (const TrainedRisk& at : n.trained) {
    if (at.risk >= at.bayes - 6 * at.std_error - 1e-9) continue;
    return "the limiting risk " + brief(at.risk) + " at L = " + brief(at.L) +
           " is below the Bayes risk " + brief(at.bayes) + ", which is impossible";
  }
  for (const LengthForEps& e : n.lengths) {
    if (!e.length) return "no L(ε) below " + brief(kLongest) + " for ε = " + brief(e.eps);
  }
  return "";
}

}  // namespace

// ---- verdict

Verdict judge_theorem_5_1(const Theorem51Numbers& n) {
  const std::string trouble = trouble_of(n);
  if (!trouble.empty()) return fails(trouble);
  return {.status = VerdictStatus::holds_fitted,
          .text = "The limiting risk falls to the Bayes risk like L^−" + brief(tail_exponent(n)) +
                  ": " + eps_text(n) + ". At L = ∞ the flow ends " + brief(n.reference_gap) +
                  " above Bayes with parameters " + brief(n.reference_error) +
                  " from the closed form."};
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string sigma2 = sup(id("Σ"), op("−") + num("2"));
  return {
      math(limit_in_time() + sub(id("R"), id("L")) + paren(sub(id("θ"), id("L")) + paren(id("t"))) +
           op("≤") + sub(id("R"), text("Bayes")) + op("+") + id("ε") + text("   for L ≥ L(ε)")),
      math(id("b") + op("→") + sup(paren(id("tr") + sigma2), num("1/4")) + text(",   ") + id("A") +
           op("→") + sup(id("b"), op("−") + num("1")) + sup(id("Σ"), op("−") + num("1")) +
           text("   at L = ∞"))};
}

std::vector<std::string> hypotheses(const LinearRegressionTask& task, const Theorem51Numbers& n,
                                    const TrainingRow& reference) {
  return {"Gaussian features with invertible covariance 0.5^|i−j|, dimension " +
              std::to_string(task.dim) + ", task variance 1, no label noise (Bayes risk " +
              brief(n.bayes) + " once L ≥ " + std::to_string(task.dim) + ")",
          "balanced start with 0 < α < √2/(d^{1/4}‖Σ‖): α = " + brief(start_alpha(task)) +
              ", bound " + brief(balanced_start_bound(task)),
          "flows run to stationarity: infinite prompt at t = " + brief(reference.t.value()) +
              " with energy defect " + brief(reference.energy_defect.value())};
}

Sheet limit_sheet(std::span<const TrainingRow> rows, double bayes) {
  Sheet sheet{.columns = {"what", "L", "value", "low", "high"}, .rows = {}};
  for (const TrainingRow& row : rows_of_kind(rows, TrainingKind::twin)) {
    const std::int64_t L = row.L.value().count();
    const double excess = row.risk - bayes, error = row.std_error.value();
    const double distance = row.limit_error.value();
    sheet.add("risk above Bayes", L, excess, excess - 2 * error, excess + 2 * error);
    sheet.add("|bA − Σ⁻¹| / |Σ⁻¹|", L, distance, distance, distance);
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

std::vector<Figure> figures() {
  return {
      {.id = "limit",
       .chart = CurveChart{.data = "t51_curves",
                           .x = {.column = "L", .title = "prompt length L", .log = true},
                           .y = {.column = "value", .title = "at the end of training", .log = true},
                           .series = "what",
                           .low = "low",
                           .high = "high"},
       .caption = "End of training against prompt length: risk above Bayes, and distance of "
                  "the learned product bA from Σ⁻¹. Both vanish; softmax attention learns "
                  "linear regression."},
      {.id = "paths",
       .chart = CurveChart{.data = "t51_paths",
                           .x = {.column = "t", .title = "training time t", .log = true},
                           .y = {.column = "risk", .title = "risk", .log = true, .min = 1e-7},
                           .series = "prompt",
                           .points = false},
       .caption = "Risk along training. Finite prompts follow the infinite one and then level "
                  "off: the plateau is the limiting risk, lower for longer prompts."}};
}

std::vector<PageTable> tables(std::span<const TrainingRow> rows) {
  Sheet ends{.columns = {"L", "limiting risk", "standard error", "Bayes risk at L",
                         "|bA − Σ⁻¹|, relative", "distance to infinite-prompt parameters", "flow"},
             .rows = {}};
  for (const TrainingRow& row : rows_of_kind(rows, TrainingKind::twin)) {
    ends.add(row.L.value().count(), row.risk, row.std_error, bayes_at(rows, row.L.value()),
             row.limit_error, row.distance, row.status);
  }
  Sheet found{.columns = {"ε", "L(ε)", "risk at L(ε)", "risk at L(ε) − 1"}, .rows = {}};
  for (const TrainingRow& row : rows_of_kind(rows, TrainingKind::eps)) {
    found.add(row.eps, row.length, row.risk, row.risk_before);
  }
  return {{.title = "End of training", .sheet = std::move(ends)},
          {.title = "How long is long enough: L(ε)", .sheet = std::move(found)}};
}

SectionReport report(const Options& options, std::span<const TrainingRow> rows) {
  const Theorem51Numbers n = numbers_of(rows);
  Section section;
  section.statement =
      "Train softmax attention by gradient flow on in-context linear regression, from the "
      "balanced start, with prompts of length L. For every ε there is a length L(ε) beyond which "
      "the risk at the end of training is at most the Bayes risk plus ε; and the parameters "
      "approach the closed-form limit of the infinite prompt, which is that of linear attention.";
  section.hypotheses = hypotheses(regression(options), n, reference_of(rows));
  section.verdict = judge_theorem_5_1(n);
  section.text =
      "Risks are halves of mean squared errors. The finite-L risk and its gradient are exact over "
      "tokens: no prompt is sampled, and a flow at L = 1e6 costs what one at L = 10 costs. L(ε) is "
      "found by bisection on whole training runs, from L = " +
      brief(kShortest) + " on: the risk at L(ε) is below the target and at L(ε) − 1 above it.";
  section.formulas = formulas();
  section.figures = figures();
  section.tables = tables(rows);
  return {.section = std::move(section),
          .datasets = {{"t51_curves", limit_sheet(rows, n.bayes)},
                       {"t51_paths", path_sheet(rows, lengths(options).back())}}};
}

}  // namespace

Statement theorem_5_1() {
  return make_statement<TrainingRow>(
      "theorem-5.1", "Theorem 5.1: softmax attention learns linear regression in context", cells,
      report);
}

}  // namespace esscher::paper
