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
#include "esscher/training/start.h"

namespace esscher::paper {
namespace {

// ---- cells

std::vector<std::int64_t> lengths(const Options& options) {
  if (options.size == Size::tiny) return {10, 100, 1000};
  return {10, 20, 50, 100, 200, 500, 1000, 10000, 100000};
}

LinearRegressionTask noisy(LinearRegressionTask task) {
  task.noise_variance = 0.2;
  return task;
}

constexpr const char* kPlain = "linear regression";
constexpr const char* kNoisy = "noisy labels";

Cells<TrainingRow> cells(const Options& options) {
  const LinearRegressionTask task = regression(options);
  const TwinSetup setup = twin_setup(options, task), noisy_setup = twin_setup(options, noisy(task));
  CellList<TrainingRow> list;
  for (const std::int64_t L : lengths(options)) {
    list.add("transfer/linear/L=" + std::to_string(L), [setup, noisy_setup, task, L] {
      const Readout limit = block_optimum(task, Length::infinity());
      return std::vector{twin_rows(kPlain, setup, ModelKind::linear, L).end,
                         twin_rows(kNoisy, noisy_setup, ModelKind::linear, L).end,
                         TrainingRow{.kind = TrainingKind::closed,
                                     .setting = "at the limit of the infinite prompt",
                                     .L = Length(L),
                                     .risk = linear_risk(task, limit, L)}};
    });
    list.add("transfer/softmax/L=" + std::to_string(L), [setup, L] {
      return std::vector{twin_rows(kPlain, setup, ModelKind::softmax, L).end};
    });
  }
  return std::move(list).cells();
}

// ---- numbers

// The rows of one length.
struct AtLength {
  TrainingRow linear, noisy, limit, softmax;

  [[nodiscard]] LinearAndSoftmax numbers(const std::string& dimension, std::int64_t L) const {
    const IndependentValue& known = independent("softmax " + dimension, 0, L);
    return {.L = L,
            .linear = linear.risk,
            .closed = independent("linear " + dimension, 0, L).value,
            .noisy = noisy.risk,
            .noisy_closed = independent("linear noisy " + dimension, 0, L).value,
            .untrained = limit.risk,
            .softmax = softmax.risk,
            .softmax_error = softmax.std_error.value(),
            .softmax_expected = known.value,
            .softmax_expected_error = known.error};
  }
};

std::map<std::int64_t, AtLength> rows_by_length(std::span<const TrainingRow> rows) {
  std::map<std::int64_t, AtLength> out;
  for (const TrainingRow& row : rows) {
    AtLength& at = out[row.L.value().count()];
    if (row.kind == TrainingKind::closed) {
      at.limit = row;
    } else if (row.model == ModelKind::softmax) {
      at.softmax = row;
    } else {
      (row.setting == kNoisy ? at.noisy : at.linear) = row;
    }
  }
  return out;
}

}  // namespace

// ---- verdict

Checks transfer_checks(std::span<const LinearAndSoftmax> at) {
  Checks out;
  std::vector<EndPoint> gaps;
  for (const LinearAndSoftmax& p : at) {
    const Judged linear{.what = "the risk of linear attention at L = " + brief(p.L),
                        .value = p.linear,
                        .expected = p.closed,
                        .source = Source::closed_form,
                        .tolerance = kExactTolerance};
    Judged noisy = linear;
    noisy.what = "the risk of linear attention with noisy labels at L = " + brief(p.L);
    noisy.value = p.noisy;
    noisy.expected = p.noisy_closed;
    out.figures.push_back(linear);
    out.figures.push_back(noisy);
    gaps.push_back({.L = p.L,
                    .excess = p.gap(),
                    .error = p.softmax_error,
                    .expected = p.softmax_expected - p.closed,
                    .expected_error = p.softmax_expected_error});
    if (p.L != at.front().L) continue;
    Judged untrained = linear;
    untrained.what = "linear attention at Σ⁻¹ instead of its limit, L = " + brief(p.L);
    untrained.value = p.untrained;
    out.controls.push_back(std::move(untrained));
  }
  add_ends(out, "softmax − linear", gaps, Source::independent);
  return out;
}

Verdict judge_transfer(std::span<const LinearAndSoftmax> at) {
  if (at.empty()) return fails("no flow was integrated");
  const LinearAndSoftmax &first = at.front(), &last = at.back();
  return verdict_of(
      transfer_checks(at), VerdictStatus::holds,
      "Trained linear attention ends at its closed form, with and without label noise; "
      "the risks of trained softmax and linear attention differ by " +
          brief(first.gap()) + " at L = " + brief(first.L) + " and by " + brief(last.gap()) +
          " at L = " + brief(last.L) + ", with ratio " + brief(last.softmax / last.linear) +
          " there.");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string gamma = sub(id("Γ"), id("L"));
  return {math(gamma + op("=") + paren(num("1") + op("+") + frac(num("1"), id("L"))) + id("Σ") +
               op("+") + frac(fn("tr") + id("Σ"), id("L")) + id("I") + and_also() + id("b") +
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
                               .reference_data = "transfer_closed",
                               .reference_title = "closed form of linear attention"},
           .caption = "Risk at the end of training against prompt length for linear and softmax "
                      "attention.",
           .read = true},
          {.id = "gap",
           .chart = CurveChart{.data = "transfer_gap",
                               .x = length,
                               .y = {.column = "gap",
                                     .title = "risk of softmax − risk of linear",
                                     .log = true}},
           .caption = "The difference of the two risks: what transferring a result from linear "
                      "attention costs.",
           .read = true}};
}

SectionReport report(const Options& options, std::span<const TrainingRow> rows) {
  std::vector<LinearAndSoftmax> numbers;
  Sheet ends{
      .columns = {"L", "linear", "closed form", "distance of bA from the limit, relative",
                  "softmax", "standard error", "softmax / linear", "softmax |bA − Σ⁻¹|, relative"},
      .rows = {}};
  const LinearRegressionTask task = regression(options);
  const std::string dimension = "d=" + std::to_string(task.dim);
  for (const auto& [L, at] : rows_by_length(rows)) {
    const LinearAndSoftmax p = at.numbers(dimension, L);
    numbers.push_back(p);
    ends.add(L, p.linear, p.closed, at.linear.limit_error, p.softmax, at.softmax.std_error,
             p.softmax / p.linear, at.softmax.limit_error);
  }
  Section section;
  section.statement =
      "What is known for linear attention transfers to softmax attention with long prompts. "
      "Linear attention trained at length L ends at a known point, the inverse of Γ_{L} (Zhang, "
      "Frei and "
      "Bartlett); softmax attention has no such formula at finite L but shares the limit L → ∞.";
  std::vector<StatedHypothesis> stated{
      {.text = "Task and start are those of Theorem 5.1: dimension " + std::to_string(task.dim) +
               ", α = " + brief(start_alpha(task)) + ".",
       .values = {{"dimension", static_cast<double>(task.dim)}, {"alpha", start_alpha(task)}},
       .holds = start_alpha(task) < balanced_start_bound(task)},
      {.text = "Linear attention divides by L: T(z) = V (1/L Σ zₗ zₗᵀ) U z.", .holds = {}}};
  section.verdict = judge_transfer(numbers);
  section.text =
      "Both are trained by the same gradient flow from the same start. Softmax pays e^{τ²} for its "
      "weights, linear attention pays for reading the sample covariance twice.";
  section.formulas = formulas();
  section.figures = figures();
  section.tables = {judged_table(transfer_checks(numbers)),
                    {.title = "End of training", .sheet = std::move(ends)}};
  return {.section = std::move(section),
          .datasets = datasets(numbers),
          .hypotheses = std::move(stated),
          .checks = transfer_checks(numbers)};
}

}  // namespace

Statement transfer() {
  return make_statement<TrainingRow>(
      "transfer", "Transfer: what linear attention learns, softmax attention learns", cells,
      report);
}

}  // namespace esscher::paper
