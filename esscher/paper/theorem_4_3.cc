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
  std::string key;  // of its independent values
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
  // Real tokens: the cost grows with L. On shorter prompts few draws carry the risk.
  const std::vector<std::int64_t> simulated{100, 300};
  return {{.name = "noisy labels, shifted queries",
           .key = "softmax shifted",
           .task = shifted,
           .lengths = exact},
          {.name = "±1 features, noisy labels",
           .key = "softmax coin",
           .task = coin,
           .lengths = simulated}};
}

// ---- cells

// The end of training at length L, and the risk of the start. Risks of drawn prompts are tested on
// many more draws than the flow sees.
std::vector<TrainingRow> end_rows(const Options& options, const GeneralTask& general,
                                  const TwinSetup& setup, std::int64_t L) {
  RiskOptions test = setup.risk;
  test.draws = options.pick<std::int64_t>(20000, 40000, 100000);
  const TrainingRow end = twin_rows(general.name, setup, ModelKind::softmax, L, test).end;
  const Estimate before =
      risk(setup.task, setup.space.readout(setup.theta0), ModelKind::softmax, L, test);
  return {end,
          {.kind = TrainingKind::closed,
           .setting = general.name,
           .L = Length(L),
           .risk = before.value,
           .std_error = before.std_error}};
}

Cells<TrainingRow> cells(const Options& options) {
  CellList<TrainingRow> list;
  for (const GeneralTask& general : general_tasks(options)) {
    TwinSetup setup = twin_setup(options, general.task);
    setup.flow.stationary = 1e-6;
    setup.points = 20;
    if (general.task.features != Features::gaussian) {
      setup.risk.draws = options.pick<std::int64_t>(800, 1000, 8000);
    }
    const std::string key = "theorem-4.3/" + general.name + "/L=";
    list.add(key + "inf",
             [name = general.name, setup] { return std::vector{reference_row(name, setup)}; });
    for (const std::int64_t L : general.lengths) {
      list.add(key + std::to_string(L),
               [options, general, setup, L] { return end_rows(options, general, setup, L); });
    }
  }
  return std::move(list).cells();
}

// ---- numbers

// The rows of one task.
struct TaskRows {
  std::string name;
  std::string key;
  TrainingRow limit;
  std::vector<TrainingRow> finite = {};
  double start = 0;

  [[nodiscard]] EndPoint excess(const TrainingRow& row) const {
    const std::int64_t L = row.L.value().count();
    const IndependentValue& known = independent(key, 0, L);
    return {.L = L,
            .excess = row.risk - limit.risk,
            .error = std::hypot(row.std_error.value(), limit.std_error.value()),
            .expected = known.value,
            .expected_error = known.error};
  }
  [[nodiscard]] TaskExcess numbers() const {
    TaskExcess out{.task = name, .at = {}, .start = start - limit.risk};
    for (const TrainingRow& row : finite) out.at.push_back(excess(row));
    return out;
  }
};

std::vector<TaskRows> rows_by_task(const Options& options, std::span<const TrainingRow> rows) {
  std::vector<TaskRows> out;
  for (const TrainingRow& row : rows) {
    if (row.kind == TrainingKind::reference) {
      out.push_back({.name = row.setting.value(), .key = {}, .limit = row});
      for (const GeneralTask& general : general_tasks(options)) {
        if (general.name == row.setting) out.back().key = general.key;
      }
    } else if (!out.empty() && row.kind == TrainingKind::closed) {
      out.back().start = row.risk;
    } else if (!out.empty()) {
      out.back().finite.push_back(row);
    }
  }
  return out;
}

}  // namespace

// ---- verdict

Checks theorem_4_3_checks(std::span<const TaskExcess> tasks) {
  Checks out;
  for (const TaskExcess& task : tasks) {
    if (task.at.empty()) continue;
    add_ends(out, "the excess risk of " + task.task, task.at, Source::independent);
    const EndPoint& last = task.at.back();
    out.controls.push_back({.what = "the start instead of the end of training, " + task.task,
                            .value = task.start,
                            .error = last.error,
                            .expected = last.expected,
                            .expected_error = last.expected_error,
                            .source = Source::independent,
                            .tolerance = kFlowTolerance});
  }
  return out;
}

Verdict judge_theorem_4_3(std::span<const TaskExcess> tasks) {
  std::string good;
  for (const TaskExcess& task : tasks) {
    if (task.at.empty()) return fails(task.task + ": no flow at finite length");
    const auto at = [](const EndPoint& e) {
      return brief_with_error(e.excess, e.error) + " at L = " + brief(e.L);
    };
    good += (good.empty() ? "" : "; ") + task.task + ": excess " + at(task.at.front()) + ", " +
            at(task.at.back());
  }
  return verdict_of(theorem_4_3_checks(tasks), VerdictStatus::holds,
                    "The excess over the infinite prompt falls from length to length, as far as it "
                    "should: " +
                        good + ".");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const auto risk = [](const std::string& at) {
    return limit_in_time() + sub(id("R"), at) + paren(sub(id("θ"), at) + paren(id("t")));
  };
  return {math(risk(id("L")) + op("≤") + risk(op("∞")) + op("+") + id("ε") + for_long_prompts())};
}

StatedHypothesis hypothesis(const TaskRows& task) {
  const double t = task.limit.t.value(), error = task.limit.std_error.value();
  const std::string risk =
      error > 0 ? brief_with_error(task.limit.risk, error) : brief(task.limit.risk, 3);
  return {.text = "In the task “" + task.name +
                  "” tokens are sub-Gaussian given the task, and the flow of the infinite prompt "
                  "converges: it is " +
                  std::string(name(task.limit.status.value())) + " at t = " + brief(t) +
                  " with risk " + risk + ".",
          .values = {{"t", t}, {"risk", task.limit.risk}, {"risk, standard error", error}},
          .holds = task.limit.status == FlowStatus::stationary};
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
                     .high = "high",
                     .reference_data = "t43_expected",
                     .reference_title = "independent values"},
      .caption =
          "Risk at the end of training, above that of the infinite prompt, against "
          "prompt length; bands are two standard errors, where these are wider than a line.",
      .read = true};
}

SectionReport report(const Options& options, std::span<const TrainingRow> rows) {
  Sheet curves{.columns = {"task", "L", "excess", "low", "high"}, .rows = {}};
  Sheet expected{.columns = {"task", "L", "excess"}, .rows = {}};
  Sheet ends{.columns = {"task", "L", "limiting risk", "standard error", "at L = ∞", "excess",
                         "distance of parameters, relative", "flow"},
             .rows = {}};
  std::vector<TaskExcess> numbers;
  std::vector<StatedHypothesis> stated;
  Section section;
  for (const TaskRows& task : rows_by_task(options, rows)) {
    numbers.push_back(task.numbers());
    stated.push_back(hypothesis(task));
    for (const TrainingRow& row : task.finite) {
      const EndPoint e = task.excess(row);
      curves.add(task.name, e.L, e.excess, e.excess - 2 * e.error, e.excess + 2 * e.error);
      expected.add(task.name, e.L, e.expected);
      ends.add(task.name, e.L, row.risk, row.std_error, task.limit.risk, e.excess, row.distance,
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
      "another covariance than prompts; its risks are averaged over tokens without sampling. In "
      "the second the "
      "features are ±1, so the limit operator is not linear; its risks are averages over a fixed "
      "sample of tasks and prompts, and the end of training is judged on fresh ones, with "
      "standard errors. Parameters are the block (A, b) of the paper.";
  section.formulas = formulas();
  section.figures = {excess_figure()};
  section.tables = {judged_table(theorem_4_3_checks(numbers)),
                    {.title = "End of training", .sheet = std::move(ends)}};
  return {.section = std::move(section),
          .datasets = {{"t43_curves", std::move(curves)}, {"t43_expected", std::move(expected)}},
          .hypotheses = std::move(stated),
          .checks = theorem_4_3_checks(numbers)};
}

}  // namespace

Statement theorem_4_3() {
  return make_statement<TrainingRow>(
      "theorem-4.3", "Theorem 4.3: long prompts train as well as infinite ones", cells, report);
}

}  // namespace esscher::paper
