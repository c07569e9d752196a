// Transfer from linear attention: the same quantities for linear attention, whose finite-L limit
// is known in closed form ([ZFB24] of docs/references.md), beside softmax.
#include <algorithm>
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/shared_training.h"
#include "esscher/paper/statements.h"
#include "esscher/paper/verdicts.h"
#include "esscher/risk/closed_form.h"

namespace esscher::paper {
namespace {

// ---- cells

std::vector<std::int64_t> lengths(const Options& options) {
  if (options.size == Size::tiny) return {10, 100, 1000};
  return {10, 20, 50, 100, 200, 500, 1000, 10000, 100000};
}

Cells<TrainingRow> cells(const Options& options) {
  const LinearRegressionTask task = regression(options);
  const TwinSetup setup = twin_setup(options, task);
  const auto end = [setup](ModelKind kind, std::int64_t L) {
    return twin_rows("linear regression", setup, kind, L).end;
  };
  CellList<TrainingRow> list;
  for (const std::int64_t L : lengths(options)) {
    list.add("transfer/linear/L=" + std::to_string(L), [end, task, L] {
      return std::vector{end(ModelKind::linear, L),
                         TrainingRow{.kind = TrainingKind::closed,
                                     .L = Length(L),
                                     .risk = linear_risk(task, block_optimum(task, L), L)}};
    });
    list.add("transfer/softmax/L=" + std::to_string(L),
             [end, L] { return std::vector{end(ModelKind::softmax, L)}; });
  }
  return std::move(list).cells();
}

// ---- numbers

// The rows of one length.
struct AtLength {
  TrainingRow linear, closed, softmax;

  [[nodiscard]] LinearAndSoftmax numbers(std::int64_t L) const {
    return {.L = L,
            .linear = linear.risk,
            .closed = closed.risk,
            .limit_error = linear.limit_error.value(),
            .softmax = softmax.risk};
  }
};

std::map<std::int64_t, AtLength> rows_by_length(std::span<const TrainingRow> rows) {
  std::map<std::int64_t, AtLength> out;
  for (const TrainingRow& row : rows) {
    AtLength& at = out[row.L.value().count()];
    if (row.kind == TrainingKind::closed) {
      at.closed = row;
    } else {
      (row.model == ModelKind::linear ? at.linear : at.softmax) = row;
    }
  }
  return out;
}

double gap_exponent(std::span<const LinearAndSoftmax> at) {
  std::vector<double> x, y;
  for (const LinearAndSoftmax& p : at) {
    x.push_back(static_cast<double>(p.L));
    y.push_back(p.gap());
  }
  return falling_exponent(x, y);
}

std::string trouble_of(std::span<const LinearAndSoftmax> at) {
  if (at.empty()) return "no flow was integrated";
  for (const LinearAndSoftmax& p : at) {
    if (p.limit_error <= 1e-5 && p.closed_error() <= 1e-6) continue;
    return "linear attention at L = " + brief(p.L) + " ends " + brief(p.closed_error()) +
           " (relative) from the closed-form risk, parameters " + brief(p.limit_error) + " from it";
  }
  if (!(at.back().gap() < at.front().gap() / 10)) {
    return "the risks of softmax and linear attention do not approach each other: gap " +
           brief(at.front().gap()) + " at the shortest prompt, " + brief(at.back().gap()) +
           " at the longest";
  }
  return "";
}

}  // namespace

// ---- verdict

double LinearAndSoftmax::gap() const { return std::abs(softmax - linear); }
double LinearAndSoftmax::closed_error() const { return std::abs(linear - closed) / closed; }

Verdict judge_transfer(std::span<const LinearAndSoftmax> at) {
  const std::string trouble = trouble_of(at);
  if (!trouble.empty()) return fails(trouble);
  double limit_error = 0;
  for (const LinearAndSoftmax& p : at) limit_error = worse(limit_error, p.limit_error);
  const LinearAndSoftmax &first = at.front(), &last = at.back();
  return {.status = VerdictStatus::holds,
          .text = "Trained linear attention ends at its closed form to " + brief(limit_error) +
                  "; the risks of trained softmax and linear attention differ by " +
                  brief(first.gap()) + " at L = " + brief(first.L) + " and by " +
                  brief(last.gap()) + " at L = " + brief(last.L) + " (exponent " +
                  brief(gap_exponent(at)) + "), with ratio " + brief(last.softmax / last.linear) +
                  " there."};
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string gamma = sub(id("Γ"), id("L"));
  return {math(gamma + op("=") + paren(num("1") + op("+") + frac(num("1"), id("L"))) + id("Σ") +
               op("+") + frac(id("tr") + id("Σ"), id("L")) + id("I") + text(",   ") + id("b") +
               id("A") + op("→") + sup(gamma, op("−") + num("1")))};
}

std::map<std::string, Sheet> datasets(std::span<const LinearAndSoftmax> numbers) {
  Sheet risks{.columns = {"model", "L", "risk"}, .rows = {}};
  Sheet closed{.columns = {"model", "L", "risk"}, .rows = {}};
  Sheet gaps{.columns = {"L", "gap"}, .rows = {}};
  for (const LinearAndSoftmax& p : numbers) {
    risks.add(ModelKind::linear, p.L, p.linear);
    risks.add(ModelKind::softmax, p.L, p.softmax);
    closed.add(ModelKind::linear, p.L, p.closed);
    gaps.add(p.L, p.gap());
  }
  return {{"transfer_risk", std::move(risks)},
          {"transfer_closed", std::move(closed)},
          {"transfer_gap", std::move(gaps)}};
}

std::vector<Figure> figures() {
  const Axis length{.column = "L", .title = "prompt length L", .log = true};
  return {{.id = "risk",
           .chart = CurveChart{.data = "transfer_risk",
                               .x = length,
                               .y = {.column = "risk", .title = "limiting risk", .log = true},
                               .series = "model",
                               .reference_data = "transfer_closed"},
           .caption = "Risk at the end of training against prompt length for linear and softmax "
                      "attention. Dashed: the closed form of linear attention."},
          {.id = "gap",
           .chart = CurveChart{.data = "transfer_gap",
                               .x = length,
                               .y = {.column = "gap", .title = "|softmax − linear|", .log = true},
                               .height = 240},
           .caption = "The difference of the two risks: what transferring a result from linear "
                      "attention costs."}};
}

SectionReport report(const Options& options, std::span<const TrainingRow> rows) {
  std::vector<LinearAndSoftmax> numbers;
  Sheet ends{.columns = {"L", "linear", "closed form", "|bA − Γ_L⁻¹|, relative", "softmax",
                         "standard error", "softmax / linear", "softmax |bA − Σ⁻¹|, relative"},
             .rows = {}};
  for (const auto& [L, at] : rows_by_length(rows)) {
    const LinearAndSoftmax p = at.numbers(L);
    numbers.push_back(p);
    ends.add(L, p.linear, p.closed, p.limit_error, p.softmax, at.softmax.std_error,
             p.softmax / p.linear, at.softmax.limit_error);
  }
  const LinearRegressionTask task = regression(options);
  Section section;
  section.statement =
      "What is known for linear attention transfers to softmax attention with long prompts. "
      "Linear attention trained at length L ends at a known point, Γ_L⁻¹ (Zhang, Frei and "
      "Bartlett); softmax attention has no such formula at finite L but shares the limit L → ∞.";
  section.hypotheses = {"the task and start of Theorem 5.1, dimension " + std::to_string(task.dim) +
                            ", α = " + brief(start_alpha(task)),
                        "linear attention divides by L: T = V (1/L Σ z z⊤) U z"};
  section.verdict = judge_transfer(numbers);
  section.text =
      "Both are trained by the same gradient flow from the same start. At short prompts they "
      "differ in both directions: softmax pays e^{τ²} for its weights, linear attention pays for "
      "reading the sample covariance twice.";
  section.formulas = formulas();
  section.figures = figures();
  section.tables = {{.title = "End of training", .sheet = std::move(ends)}};
  return {.section = std::move(section), .datasets = datasets(numbers)};
}

}  // namespace

Statement transfer() {
  return make_statement<TrainingRow>(
      "transfer", "Transfer: what linear attention learns, softmax attention learns", cells,
      report);
}

}  // namespace esscher::paper
