// Theorem 4.3: for a general in-context task the limiting risk at length L is at most that of the
// infinite prompt plus eps, for L >= L(eps). Checked where Theorem 5.1 does not apply: noisy labels
// with different prompt and query covariances, and features that are not Gaussian.
#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/shared_training.h"
#include "esscher/paper/statements.h"
#include "esscher/paper/verdicts.h"

namespace esscher::paper {
namespace {

// ---- setting

struct GeneralTask {
  std::string name;
  LinearRegressionTask task;
  std::vector<std::int64_t> lengths;
};

std::vector<GeneralTask> general_tasks(const Options& options) {
  LinearRegressionTask shifted = LinearRegressionTask::with_covariance(power_covariance(2, 0.5));
  shifted.query_cov = Vector{{2.0, 0.5}}.asDiagonal();
  shifted.noise_variance = 0.2;
  LinearRegressionTask coin = LinearRegressionTask::with_covariance(power_covariance(2, 0.5));
  coin.features = Features::rademacher;
  coin.noise_variance = 0.05;
  std::vector<std::int64_t> exact{10, 30, 100, 300, 1000, 10000, 100000};
  if (options.size == Size::tiny) exact = {10, 100, 1000};
  std::vector<std::int64_t> simulated{10, 100};  // real tokens: the cost grows with L
  if (options.size == Size::quick) simulated = {10, 30, 100, 300};
  if (options.size == Size::full) simulated = {10, 30, 100, 300, 1000};
  return {{.name = "noisy labels, shifted queries", .task = shifted, .lengths = exact},
          {.name = "±1 features, noisy labels", .task = coin, .lengths = simulated}};
}

// ---- cells

Cells<TrainingRow> cells(const Options& options) {
  CellList<TrainingRow> list;
  for (const GeneralTask& general : general_tasks(options)) {
    TwinSetup setup = twin_setup(options, general.task);
    setup.flow.stationary = 1e-6;
    setup.points = 20;
    const std::string key = "theorem-4.3/" + general.name + "/L=";
    list.add(key + "inf",
             [name = general.name, setup] { return std::vector{reference_row(name, setup)}; });
    for (const std::int64_t L : general.lengths) {
      list.add(key + std::to_string(L), [name = general.name, setup, L] {
        return std::vector{twin_rows(name, setup, ModelKind::softmax, L).end};
      });
    }
  }
  return std::move(list).cells();
}

// ---- numbers

// The rows of one task.
struct TaskRows {
  std::string name;
  TrainingRow limit;
  std::vector<TrainingRow> finite;

  [[nodiscard]] Excess excess(const TrainingRow& row) const {
    return {.L = row.L.value().count(),
            .value = row.risk - limit.risk,
            .std_error = std::hypot(row.std_error.value(), limit.std_error.value())};
  }
  [[nodiscard]] TaskExcess numbers() const {
    TaskExcess out{.task = name, .at = {}};
    for (const TrainingRow& row : finite) out.at.push_back(excess(row));
    return out;
  }
};

std::vector<TaskRows> rows_by_task(std::span<const TrainingRow> rows) {
  std::vector<TaskRows> out;
  for (const TrainingRow& row : rows) {
    if (row.kind == TrainingKind::reference) {
      out.push_back({.name = row.setting.value(), .limit = row, .finite = {}});
    } else if (!out.empty()) {
      out.back().finite.push_back(row);
    }
  }
  return out;
}

std::string trouble_of(const TaskExcess& task) {
  if (task.at.empty()) return task.task + ": no flow at finite length";
  const Excess &first = task.at.front(), &last = task.at.back();
  const double allowed = std::max(0.2 * first.value, 4 * last.std_error);
  if (!(last.value <= allowed)) {
    return task.task + ": at L = " + brief(last.L) + " the limiting risk is still " +
           brief(last.value) + " above that of the infinite prompt (" + brief(first.value) +
           " at L = " + brief(first.L) + ")";
  }
  for (const Excess& e : task.at) {
    if (e.value >= -6 * e.std_error - 1e-9) continue;
    return task.task + ": at L = " + brief(e.L) + " the limiting risk is " + brief(-e.value) +
           " below that of the infinite prompt, which is the smallest there is";
  }
  return "";
}

}  // namespace

// ---- verdict

Verdict judge_theorem_4_3(std::span<const TaskExcess> tasks) {
  std::string trouble = tasks.empty() ? "no task was trained" : "";
  std::string good;
  for (const TaskExcess& task : tasks) {
    if (trouble.empty()) trouble = trouble_of(task);
    if (!trouble.empty()) break;
    const auto at = [](const Excess& e) {
      return brief_with_error(e.value, e.std_error) + " at L = " + brief(e.L);
    };
    good += (good.empty() ? "" : "; ") + task.task + ": excess " + at(task.at.front()) + ", " +
            at(task.at.back());
  }
  return Verdict::unless(trouble, VerdictStatus::holds,
                         "The excess over the infinite-prompt limit vanishes: " + good + ".");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const auto risk = [](const std::string& at) {
    return limit_in_time() + sub(id("R"), at) + paren(sub(id("θ"), at) + paren(id("t")));
  };
  return {
      math(risk(id("L")) + op("≤") + risk(op("∞")) + op("+") + id("ε") + text("   for L ≥ L(ε)"))};
}

std::string hypothesis(const TaskRows& task) {
  return task.name +
         ": tokens are sub-Gaussian given the task; the infinite-prompt flow converges (" +
         std::string(name(task.limit.status.value())) + ", t = " + brief(task.limit.t.value()) +
         ") to risk " + brief_with_error(task.limit.risk, task.limit.std_error.value());
}

Figure excess_figure() {
  return {
      .id = "excess",
      .chart =
          CurveChart{.data = "t43_curves",
                     .x = {.column = "L", .title = "prompt length L", .log = true},
                     .y = {.column = "excess", .title = "limiting risk above L = ∞", .log = true},
                     .series = "task",
                     .low = "low",
                     .high = "high"},
      .caption =
          "Risk at the end of training, above that of the infinite prompt, against "
          "prompt length; bands are two standard errors. Points at or below zero cannot "
          "be drawn on a log axis."};
}

SectionReport report(const Options&, std::span<const TrainingRow> rows) {
  Sheet curves{.columns = {"task", "L", "excess", "low", "high"}, .rows = {}};
  Sheet ends{.columns = {"task", "L", "limiting risk", "standard error", "at L = ∞", "excess",
                         "distance of parameters, relative", "flow"},
             .rows = {}};
  std::vector<TaskExcess> numbers;
  Section section;
  for (const TaskRows& task : rows_by_task(rows)) {
    numbers.push_back(task.numbers());
    section.hypotheses.push_back(hypothesis(task));
    for (const TrainingRow& row : task.finite) {
      const Excess e = task.excess(row);
      curves.add(task.name, e.L, e.value, e.value - 2 * e.std_error, e.value + 2 * e.std_error);
      ends.add(task.name, e.L, row.risk, row.std_error, task.limit.risk, e.value, row.distance,
               row.status);
    }
  }
  section.statement =
      "For any in-context task with sub-Gaussian tokens: if training with infinite prompts "
      "converges, training with long enough prompts ends at a risk at most ε higher. The theorem "
      "does not say the limit is good, only that finite prompts reach it.";
  section.verdict = judge_theorem_4_3(numbers);
  section.text =
      "Two tasks outside Theorem 5.1. In the first the labels are noisy and queries come from "
      "another covariance than prompts; its risks are exact over tokens. In the second the "
      "features are ±1, so the limit operator is not linear; its risks are averages over a fixed "
      "sample of tasks and prompts, and the end of training is judged on fresh ones, with "
      "standard errors. Parameters are the block (A, b) of the paper.";
  section.formulas = formulas();
  section.figures = {excess_figure()};
  section.tables = {{.title = "End of training", .sheet = std::move(ends)}};
  return {.section = std::move(section), .datasets = {{"t43_curves", std::move(curves)}}};
}

}  // namespace

Statement theorem_4_3() {
  return make_statement<TrainingRow>(
      "theorem-4.3", "Theorem 4.3: long prompts train as well as infinite ones", cells, report);
}

}  // namespace esscher::paper
