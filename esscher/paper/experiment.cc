// The authors' experiment: K, Q, V, O trained by SGD on fresh prompts, test error against prompt
// length for softmax and linear attention, beside Bayes (ridge) and the infinite prompt. Twice: as
// the paper describes it, and under the law the released code draws.
#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/statements.h"
#include "esscher/paper/verdicts.h"
#include "esscher/risk/bayes.h"
#include "esscher/risk/risk.h"
#include "esscher/training/trainer.h"

namespace esscher::paper {
namespace {

// ---- setting

enum class ExperimentPreset { intended, released };
constexpr ExperimentPreset kPresets[] = {ExperimentPreset::intended, ExperimentPreset::released};

constexpr auto enum_names(ExperimentPreset) {
  return EnumNames<ExperimentPreset, 2>{
      "preset",
      {{{ExperimentPreset::intended, "as intended"}, {ExperimentPreset::released, "as released"}}}};
}

struct Schedule {
  std::int64_t steps;
  double learning_rate;
};

// The authors: 300000 steps of 1e-3. Shorter runs keep the training time steps * rate.
Schedule schedule(const Options& options) {
  return options.pick<Schedule>({3000, 1e-1}, {20000, 1.5e-2}, {300000, 1e-3});
}

Index batch_size(const Options& options) { return options.pick<Index>(32, 128, 128); }

std::vector<std::int64_t> lengths(const Options& options) {
  if (options.size == Size::tiny) return {10, 1000};
  if (options.size == Size::quick) return {10, 20, 50, 100, 200, 500, 1000};
  std::vector<std::int64_t> out;
  for (std::int64_t L = 10; L < 100; L += 10) out.push_back(L);
  for (std::int64_t L = 100; L <= 1000; L += 100) out.push_back(L);
  return out;
}

// Released code: the prompt goes through the Cholesky factor C of Sigma twice, the query never.
LinearRegressionTask as_released(LinearRegressionTask task) {
  const Matrix C = task.prompt_cov.llt().matrixL();
  const Matrix CC = C * C;
  task.prompt_cov = CC * CC.transpose();
  task.query_cov = Matrix::Identity(task.dim, task.dim);
  return task;
}

// ---- rows and cells

enum class ExperimentKind { test, loss };

constexpr auto enum_names(ExperimentKind) {
  return EnumNames<ExperimentKind, 2>{
      "kind of row", {{{ExperimentKind::test, "test"}, {ExperimentKind::loss, "loss"}}}};
}

struct ExperimentRow {
  ExperimentKind kind = ExperimentKind::test;
  ExperimentPreset preset = ExperimentPreset::intended;
  ModelKind model = ModelKind::softmax;
  Length L = 1;
  std::optional<TrainStatus> status = {};
  std::optional<std::int64_t> steps = {};
  std::optional<double> mse = {};
  double std_error = 0;
  std::optional<double> bayes = {}, bayes_error = {};
  std::optional<std::int64_t> step = {};
  std::optional<double> loss = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("kind", row.kind, "", "what the row holds");
    column("preset", row.preset, "", "as the paper describes it, or as its code was released");
    column("model", row.model, "", "softmax or linear attention");
    column("L", row.L, "tokens", "length of the prompt");
    column("status", row.status, "", "how flow or training ended");
    column("steps", row.steps, "", "steps of training");
    column("mse", row.mse, "", "test mean squared error");
    column("std_error", row.std_error, "", "standard error");
    column("bayes", row.bayes, "", "mean squared error of the Bayes predictor");
    column("bayes_error", row.bayes_error, "", "its standard error");
    column("step", row.step, "", "last step of a block of the loss curve");
    column("loss", row.loss, "", "mean loss over the block");
  }
};

struct TrainingCell {
  ExperimentPreset preset;
  ModelKind model;
  Length length;
};

std::vector<ExperimentRow> train(const Options& options, const TrainingCell& cell) {
  TrainConfig config = TrainConfig::authors(cell.model, cell.length);
  LinearRegressionTask task = config.task.regression();
  if (cell.preset == ExperimentPreset::released) task = as_released(task);
  config.task = task;
  const Schedule plan = schedule(options);
  config.optimizer.learning_rate = plan.learning_rate;
  config.batch = batch_size(options);
  config.seed = options.seed + 1;
  config.curve_block = plan.steps / 50;
  Trainer trainer(config);
  trainer.run(plan.steps);

  RiskOptions nodes;
  nodes.log2_nodes = options.pick(9, 12, 13);
  nodes.stream = Stream(options.seed).split(29);
  const Estimate risk = esscher::risk(task, trainer.heads(), cell.model, cell.length, nodes);
  const Estimate bayes =
      bayes_risk(task, cell.length, options.pick(500, 4000, 20000), Stream(options.seed).split(30));
  std::vector<ExperimentRow> rows{{.kind = ExperimentKind::test,
                                   .preset = cell.preset,
                                   .model = cell.model,
                                   .L = cell.length,
                                   .status = trainer.status(),
                                   .steps = trainer.step(),
                                   .mse = 2 * risk.value,  // twice a risk
                                   .std_error = 2 * risk.std_error,
                                   .bayes = 2 * bayes.value,
                                   .bayes_error = 2 * bayes.std_error}};
  for (const LossPoint& p : trainer.curve()) {
    rows.push_back({.kind = ExperimentKind::loss,
                    .preset = cell.preset,
                    .model = cell.model,
                    .L = cell.length,
                    .std_error = p.std_error,
                    .step = p.last,
                    .loss = p.loss});
  }
  return rows;
}

// The longest first: threads end together.
Cells<ExperimentRow> cells(const Options& options) {
  CellList<ExperimentRow> list;
  const auto add = [&](const TrainingCell& cell) {
    list.add("experiment/" + std::string(name(cell.preset)) + "/" + std::string(name(cell.model)) +
                 "/L=" + cell.length.text(),
             [options, cell] { return train(options, cell); });
  };
  std::vector<std::int64_t> falling = lengths(options);
  std::reverse(falling.begin(), falling.end());
  for (const ExperimentPreset preset : kPresets) {
    for (const ModelKind model : {ModelKind::softmax, ModelKind::linear}) {
      for (const std::int64_t L : falling) add({preset, model, L});
    }
    add({preset, ModelKind::linear, Length::infinity()});
  }
  return std::move(list).cells();
}

// ---- numbers

ExperimentNumbers numbers_of(std::span<const ExperimentRow> rows, ExperimentPreset preset) {
  ExperimentNumbers n{.preset = std::string(name(preset)), .infinite = std::nan("")};
  for (const ExperimentRow& row : rows) {
    if (row.kind != ExperimentKind::test || row.preset != preset) continue;
    if (row.L.is_infinite()) {
      n.infinite = row.mse.value();
      continue;
    }
    (row.model == ModelKind::softmax ? n.softmax : n.linear)
        .push_back({.L = row.L.count(),
                    .mse = row.mse.value(),
                    .std_error = row.std_error,
                    .bayes = row.bayes.value(),
                    .bayes_error = row.bayes_error.value(),
                    .diverged = row.status != TrainStatus::running});
  }
  const auto shorter = [](const TestError& a, const TestError& b) { return a.L < b.L; };
  std::sort(n.softmax.begin(), n.softmax.end(), shorter);
  std::sort(n.linear.begin(), n.linear.end(), shorter);
  return n;
}

// What is wrong with one model of one preset.
std::string trouble_of(const std::vector<TestError>& at, double infinite,
                       const std::string& which) {
  if (at.empty()) return which + " was not trained";
  for (const TestError& e : at) {
    const std::string where = which + " at L = " + brief(e.L);
    if (e.diverged) return where + " diverged";
    if (!(e.mse >= e.bayes - 6 * std::hypot(e.std_error, e.bayes_error))) {
      return where + " is better than Bayes, which is impossible (" + brief(e.mse) + " against " +
             brief(e.bayes) + ")";
    }
  }
  const double first = at.front().mse, last = at.back().mse;
  if (!(last - infinite < 0.5 * (first - infinite))) {
    return "test error of " + which + " does not approach that of the infinite prompt (" +
           brief(first) + " at the shortest, " + brief(last) + " at the longest, " +
           brief(infinite) + " at infinity)";
  }
  return "";
}

std::string trouble_of(const ExperimentNumbers& n) {
  std::string trouble = trouble_of(n.softmax, n.infinite, "softmax");
  if (trouble.empty()) trouble = trouble_of(n.linear, n.infinite, "linear");
  if (trouble.empty() && !(n.infinite <= 0.75)) {
    trouble = "training at L = ∞ ends at test error " + brief(n.infinite);
  }
  return trouble.empty() ? "" : n.preset + ": " + trouble;
}

}  // namespace

// ---- verdict

Verdict judge_experiment(std::span<const ExperimentNumbers> presets) {
  if (presets.empty()) return fails("nothing was trained");
  std::string good;
  for (const ExperimentNumbers& n : presets) {
    const std::string trouble = trouble_of(n);
    if (!trouble.empty()) return fails(trouble);
    const TestError& softmax = n.softmax.back();
    good += (good.empty() ? "" : "; ") + n.preset + ": at L = " + brief(softmax.L) + " softmax " +
            brief(softmax.mse) + ", linear " + brief(n.linear.back().mse) + ", Bayes " +
            brief(softmax.bayes) + ", infinite prompt " + brief(n.infinite);
  }
  return {.status = VerdictStatus::holds, .text = good + "."};
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string scores =
      frac(op("⟨") + id("K") + sub(id("z"), id("l")) + op(",") + id("Q") + id("z") + op("⟩"),
           root(num("6")));
  return {math(text("prediction ") + op("=") + id("O") + id("V") + op("∑") +
               sub(id("softmax"), id("l")) + paren(scores) + sub(id("z"), id("l")) + text(",   ") +
               sub(id("z"), id("l")) + op("=") +
               paren(sub(id("x"), id("l")) + op(",") + sub(id("y"), id("l"))))};
}

std::vector<std::string> hypotheses(const Options& options) {
  const Schedule plan = schedule(options);
  return {
      "w ~ N(0, I/5), label noise 0.1 on prompt and query, covariance 0.5^|i−j|, PyTorch-style "
      "start",
      std::to_string(lengths(options).size()) + " lengths × softmax and linear × " +
          brief(plan.steps) + " SGD steps of batch " + std::to_string(batch_size(options)) +
          ", learning rate " + brief(plan.learning_rate) +
          (options.size == Size::full
               ? " (the authors' schedule)"
               : " (the authors: 19 lengths, 300000 steps of 0.001; `--full` runs that)"),
      "as intended: one covariance for prompt and query",
      "as released: the published code colours the prompt twice and the query not at all, so "
      "the prompt has covariance (CC)(CC)⊤ with C the Cholesky factor, and the query has "
      "covariance I"};
}

Sheet risk_sheet(std::span<const ExperimentNumbers> presets) {
  Sheet sheet{.columns = {"experiment", "model", "L", "mse", "low", "high"}, .rows = {}};
  for (const ExperimentNumbers& n : presets) {
    for (std::size_t i = 0; i < n.softmax.size(); ++i) {
      const TestError &softmax = n.softmax[i], &linear = n.linear.at(i);
      const auto add = [&](const char* model, double value, double error) {
        sheet.add(n.preset, model, softmax.L, value, value - 2 * error, value + 2 * error);
      };
      add("softmax, trained", softmax.mse, softmax.std_error);
      add("linear, trained", linear.mse, linear.std_error);
      add("ridge (Bayes)", softmax.bayes, softmax.bayes_error);
      add("infinite prompt, trained", n.infinite, 0);
    }
  }
  return sheet;
}

// Test errors as released, divided by those as intended.
Sheet difference_sheet(const ExperimentNumbers& intended, const ExperimentNumbers& released) {
  Sheet sheet{.columns = {"model", "L", "ratio"}, .rows = {}};
  for (std::size_t i = 0; i < intended.softmax.size(); ++i) {
    const std::int64_t L = intended.softmax[i].L;
    sheet.add(ModelKind::softmax, L, released.softmax.at(i).mse / intended.softmax[i].mse);
    sheet.add(ModelKind::linear, L, released.linear.at(i).mse / intended.linear.at(i).mse);
  }
  return sheet;
}

Sheet loss_sheet(std::span<const ExperimentRow> rows, Length longest) {
  Sheet sheet{.columns = {"model", "step", "loss", "low", "high"}, .rows = {}};
  for (const ExperimentRow& row : rows) {
    if (row.kind != ExperimentKind::loss || row.preset != ExperimentPreset::intended) continue;
    if (row.L != longest) continue;
    const double loss = row.loss.value();
    sheet.add(row.model, row.step, loss, loss - 2 * row.std_error, loss + 2 * row.std_error);
  }
  return sheet;
}

std::vector<Figure> figures(std::int64_t longest) {
  const Axis length{.column = "L", .title = "prompt length L", .log = true};
  return {
      {.id = "risk",
       .chart = CurveChart{.data = "experiment_risk",
                           .x = length,
                           .y = {.column = "mse", .title = "test mean squared error", .log = true},
                           .series = "model",
                           .low = "low",
                           .high = "high",
                           .facet = "experiment",
                           .height = 300},
       .caption = "Test error against prompt length, as intended and as released. Both trained "
                  "models fall towards the infinite prompt; ridge shows what a better algorithm "
                  "than one attention layer gets."},
      {.id = "difference",
       .chart = CurveChart{.data = "experiment_difference",
                           .x = length,
                           .y = {.column = "ratio", .title = "released / intended"},
                           .series = "model",
                           .references = {{'y', 1, "equal"}},
                           .height = 220},
       .caption = "Test error as released divided by as intended: the double colouring is not a "
                  "detail."},
      {.id = "loss",
       .chart = CurveChart{.data = "experiment_loss",
                           .x = {.column = "step", .title = "SGD step"},
                           .y = {.column = "loss", .title = "loss", .log = true},
                           .series = "model",
                           .low = "low",
                           .high = "high",
                           .points = false,
                           .height = 240},
       .caption = "Training loss at L = " + brief(longest) +
                  ", as intended, averaged over blocks of steps."}};
}

PageTable test_table(std::span<const ExperimentNumbers> presets) {
  PageTable table{.title = "Test mean squared error",
                  .sheet = {.columns = {"experiment", "L", "softmax", "linear", "ridge (Bayes)",
                                        "infinite prompt", "largest standard error"},
                            .rows = {}}};
  for (const ExperimentNumbers& n : presets) {
    for (std::size_t i = 0; i < n.softmax.size(); ++i) {
      const TestError& softmax = n.softmax[i];
      table.sheet.add(n.preset, softmax.L, softmax.mse, n.linear.at(i).mse, softmax.bayes,
                      n.infinite, std::max(softmax.std_error, softmax.bayes_error));
    }
  }
  return table;
}

SectionReport report(const Options& options, std::span<const ExperimentRow> rows) {
  const std::int64_t longest = lengths(options).back();
  const std::vector<ExperimentNumbers> numbers{numbers_of(rows, ExperimentPreset::intended),
                                               numbers_of(rows, ExperimentPreset::released)};
  Section section;
  section.statement =
      "The paper's figure: one attention head with separate K, Q, V and O is trained by SGD on "
      "noisy in-context regression, dimension 5, for each prompt length. Trained softmax and "
      "trained linear attention should approach each other and the infinite prompt as L grows.";
  section.hypotheses = hypotheses(options);
  section.verdict = judge_experiment(numbers);
  section.text =
      "Test errors are mean squared errors of the trained parameters, exact over tokens (no test "
      "set): 0.1 of it is label noise that nothing can predict. Ridge regression with the right "
      "penalty is the best possible predictor. Gradients come from fresh prompts whose scores are "
      "drawn instead of their tokens, which has the same law.";
  section.formulas = formulas();
  section.figures = figures(longest);
  section.tables = {test_table(numbers)};
  return {.section = std::move(section),
          .datasets = {{"experiment_risk", risk_sheet(numbers)},
                       {"experiment_difference", difference_sheet(numbers[0], numbers[1])},
                       {"experiment_loss", loss_sheet(rows, longest)}}};
}

}  // namespace

Statement experiment() {
  return make_statement<ExperimentRow>(
      "experiment", "The authors' experiment: test error against prompt length", cells, report);
}

}  // namespace esscher::paper
