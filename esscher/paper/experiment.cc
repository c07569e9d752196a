// The authors' experiment: K, Q, V, O trained by SGD on fresh prompts from PyTorch's default start,
// 32 starts per prompt length, beside the start of the theorem (balanced, by gradient flow). Twice:
// as the paper describes it, and under the law the released code draws.
//
// The statement is about the start of the theorem, so that one is judged. Default starts end in more
// than one basin; their end points are reported, with what the stationary points there are.
#include "esscher/paper/experiment.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/estimate/quantile.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/statements.h"
#include "esscher/paper/verdicts.h"
#include "esscher/training/trainer.h"

namespace esscher::paper {
namespace {

// ---- numbers

// The independent value of this preset is stored under its first word.
std::string word_of(ExperimentPreset preset) {
  return preset == ExperimentPreset::intended ? "intended" : "released";
}

std::vector<TheoremStart> theorem_starts(std::span<const ExperimentRow> rows) {
  std::vector<TheoremStart> out;
  for (const ExperimentPreset preset : kPresets) {
    const double floor = floor_of(task_of(preset));
    for (const ModelKind model : {ModelKind::softmax, ModelKind::linear}) {
      TheoremStart curve{.preset = std::string(name(preset)), .model = model, .at = {}};
      for (const ExperimentRow& row : rows) {
        if (row.kind != ExperimentKind::theorem || row.preset != preset || row.model != model) {
          continue;
        }
        const std::int64_t L = row.L.count();
        const IndependentValue& known =
            independent(std::string(name(model)) + " " + word_of(preset), 0, L);
        curve.at.push_back({.L = L,
                            .excess = row.mse - floor,
                            .error = row.std_error,
                            .expected = 2 * known.value - floor,
                            .expected_error = 2 * known.error});
      }
      std::sort(curve.at.begin(), curve.at.end(),
                [](const EndPoint& a, const EndPoint& b) { return a.L < b.L; });
      out.push_back(std::move(curve));
    }
  }
  return out;
}

// The ends of default starts at one length.
struct Ends {
  ExperimentPreset preset = ExperimentPreset::intended;
  ModelKind model = ModelKind::softmax;
  Length L = 1;
  std::vector<double> mse = {};
  double limit = 0;  // end of the theorem's start
  double bayes = 0;
  std::int64_t diverged = 0;

  // A start reaches the basin of the limit if its error above the label noise is at most twice that
  // of the theorem's start, or is below kNear of what there is to predict.
  [[nodiscard]] std::int64_t reached() const {
    return std::count_if(mse.begin(), mse.end(), [&](double x) { return x <= threshold(); });
  }
  [[nodiscard]] double threshold() const;
};

constexpr double kNear = 0.08;

double Ends::threshold() const {
  const LinearRegressionTask task = task_of(preset);
  const double floor = floor_of(task);
  const double signal = task.task_variance * task.query_cov.trace();
  return floor + std::max(2 * (limit - floor), kNear * signal);
}

std::vector<Ends> ends_of(std::span<const ExperimentRow> rows) {
  std::vector<Ends> out;
  for (const ExperimentRow& row : rows) {
    if (row.kind != ExperimentKind::start) continue;
    if (out.empty() || out.back().preset != row.preset || out.back().model != row.model ||
        out.back().L != row.L) {
      const std::string what = std::string(name(row.model)) + " " + word_of(row.preset);
      const double floor = floor_of(task_of(row.preset));
      const bool known = !row.L.is_infinite() && has_independent(what, 0, row.L.count());
      out.push_back({.preset = row.preset,
                     .model = row.model,
                     .L = row.L,
                     .limit = known ? 2 * independent(what, 0, row.L.count()).value : floor,
                     .bayes = row.bayes.value()});
    }
    if (row.status == name(TrainStatus::running)) {
      out.back().mse.push_back(row.mse);
    } else {
      ++out.back().diverged;
    }
  }
  return out;
}

}  // namespace

// ---- verdict

Checks experiment_checks(std::span<const TheoremStart> curves) {
  Checks out;
  for (const TheoremStart& curve : curves) {
    const std::string which = std::string(name(curve.model)) + ", " + curve.preset;
    add_ends(out, "the error above the label noise of " + which, curve.at,
             curve.model == ModelKind::linear ? Source::closed_form : Source::independent);
  }
  // What softmax reaches is not what linear attention reaches.
  for (const TheoremStart& softmax : curves) {
    for (const TheoremStart& linear : curves) {
      if (softmax.model != ModelKind::softmax || linear.model != ModelKind::linear ||
          softmax.preset != linear.preset || softmax.at.empty() || linear.at.empty()) {
        continue;
      }
      Judged control = {
          .what = "the error of linear attention taken for that of softmax, " + softmax.preset,
          .value = linear.at.back().excess,
          .error = softmax.at.back().error,
          .expected = softmax.at.back().expected,
          .source = Source::independent,
          .tolerance = kFlowTolerance};
      out.controls.push_back(std::move(control));
    }
  }
  return out;
}

Verdict judge_experiment(std::span<const TheoremStart> curves, const std::string& report) {
  std::string text =
      "From the start of the theorem, trained softmax and linear attention approach "
      "the infinite prompt like 1/L. What is left above the label noise:";
  std::string sep = " ";
  for (const TheoremStart& curve : curves) {
    if (curve.at.empty()) continue;
    text += sep + brief(curve.at.back().excess, 3) + " for " + std::string(name(curve.model)) +
            " " + curve.preset + " at L = " + brief(curve.at.back().L);
    sep = ", ";
  }
  return verdict_of(experiment_checks(curves), VerdictStatus::holds, text + "." + report);
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string scores =
      frac(angle(id("K") + sub(id("z"), id("l")) + op(",") + id("Q") + id("z")), root(num("6")));
  return {math(text("prediction") + op("=") + id("O") + id("V") + op("∑") +
               sub(id("softmax"), id("l")) + paren(scores) + sub(id("z"), id("l")) + and_also() +
               sub(id("z"), id("l")) + op("=") +
               paren(sub(id("x"), id("l")) + op(",") + sub(id("y"), id("l"))))};
}

std::vector<StatedHypothesis> hypotheses(const Options& options) {
  const Schedule plan = schedule(options);
  const std::string steps = brief(plan.steps);
  return {
      {.text = "Task vectors are N(0, I/5), labels of prompt and query have noise of variance 0.1, "
               "and the covariance is 0.5^{|i−j|}.",
       .values = {{"dimension", 5}, {"noise variance", 0.1}},
       .holds = {}},
      {.text = "The theorem's start is the balanced (A, b), from which the gradient flow of the "
               "exact risk runs until it is stationary; α is half of what the theorem allows.",
       .values = {{"alpha over its bound", kTheoremStart}}},
      {.text =
           "The default start is K, Q, V, O as PyTorch draws them: " + std::to_string(plan.starts) +
           " starts per length, " + steps + " SGD steps of batch " + std::to_string(plan.batch) +
           " with learning rate " + brief(plan.learning_rate) +
           (options.size == Size::full ? ", the authors' schedule."
                                       : " (the authors: 300000 steps of 0.001, batch 128)."),
       .values = {{"starts per length", static_cast<double>(plan.starts)},
                  {"steps", static_cast<double>(plan.steps)},
                  {"batch", static_cast<double>(plan.batch)},
                  {"learning rate", plan.learning_rate}},
       .holds = {}},
      {.text = "As intended: prompt and query have one covariance.", .holds = {}},
      {.text = "As released: the published code colours the prompt twice and the query not at all, "
               "so the prompt has covariance (CC)(CC)ᵀ with C the Cholesky factor, and the query "
               "has covariance I.",
       .holds = {}}};
}

// "16 of 32 softmax starts at L = 1000".
std::string reached_text(const Ends& e) {
  return std::to_string(e.reached()) + " of " +
         std::to_string(static_cast<std::int64_t>(e.mse.size()) + e.diverged) + " " +
         std::string(name(e.model)) +
         " starts at L = " + (e.L.is_infinite() ? std::string("∞") : brief(e.L.count()));
}

std::string default_report(const Options& options, std::span<const Ends> ends) {
  std::string text =
      " Reported, not judged, because the theorem does not cover it: from the default start the "
      "basin of the limit is reached by";
  const Length longest(default_lengths(options).back());
  for (const ExperimentPreset preset : kPresets) {
    std::string sep = " ";
    for (const Ends& e : ends) {
      if (e.preset != preset || e.L != longest) continue;
      text += sep + reached_text(e);
      sep = " and ";
    }
    text +=
        " (" + std::string(name(preset)) + ")" + (preset == ExperimentPreset::intended ? "," : ".");
  }
  return text;
}

std::string length_text(Length L) { return L.is_infinite() ? "∞" : brief(L.count()); }

std::map<std::string, Sheet> datasets(std::span<const TheoremStart> curves,
                                      std::span<const Ends> ends) {
  Sheet theorem{.columns = {"experiment", "model", "L", "excess", "low", "high"}, .rows = {}};
  Sheet expected{.columns = {"experiment", "model", "L", "excess"}, .rows = {}};
  for (const TheoremStart& curve : curves) {
    for (const EndPoint& e : curve.at) {
      theorem.add(curve.preset, curve.model, e.L, e.excess, e.excess - 2 * e.error,
                  e.excess + 2 * e.error);
      expected.add(curve.preset, curve.model, e.L, e.expected);
    }
  }
  Sheet points{.columns = {"place", "L", "mse", "model"}, .rows = {}};
  Sheet reached{.columns = {"experiment", "model", "L", "fraction"}, .rows = {}};
  for (const Ends& e : ends) {
    const std::string label = std::string(name(e.model)) + ", " + std::string(name(e.preset));
    if (e.L.is_infinite()) continue;
    // The four columns of points at one length stand side by side.
    const int column =
        2 * (e.preset == ExperimentPreset::released) + (e.model == ModelKind::linear);
    const double place = static_cast<double>(e.L.count()) * std::pow(1.25, column - 1.5);
    for (const double mse : e.mse) points.add(place, e.L.count(), mse, label);
    const auto n = static_cast<double>(e.mse.size()) + static_cast<double>(e.diverged);
    reached.add(e.preset, e.model, e.L.count(), static_cast<double>(e.reached()) / n);
  }
  return {{"experiment_theorem", std::move(theorem)},
          {"experiment_expected", std::move(expected)},
          {"experiment_ends", std::move(points)},
          {"experiment_reached", std::move(reached)}};
}

std::vector<Figure> figures() {
  const Axis length{.column = "L", .title = "prompt length L", .log = true};
  return {
      {.id = "theorem",
       .chart =
           CurveChart{.data = "experiment_theorem",
                      .x = length,
                      .y = {.column = "excess", .title = "error above label noise", .log = true},
                      .series = "model",
                      .low = "low",
                      .high = "high",
                      .reference_data = "experiment_expected",
                      .reference_title = "closed form or independent value",
                      .facet = "experiment"},
       .caption =
           "From the theorem's start: mean squared error above the label noise at the end of "
           "the flow against prompt length. Linear attention has a closed form, softmax has "
           "independent values.",
       .read = true},
      {.id = "ends",
       .chart =
           ScatterChart{.data = "experiment_ends",
                        .x = {.column = "place", .title = "prompt length L", .log = true},
                        .y = {.column = "mse", .title = "test mean squared error", .log = true},
                        .series = "model",
                        .tooltip = {"model", "L", "mse"}},
       .caption = "From the default start: test error at the end of SGD against prompt length, one "
                  "point per start. The four kinds stand side by side at each length. Reported, "
                  "not judged.",
       .read = true},
      {.id = "reached",
       .chart = CurveChart{.data = "experiment_reached",
                           .x = length,
                           .y = {.column = "fraction", .title = "fraction in the limit's basin"},
                           .series = "model",
                           .facet = "experiment"},
       .caption = "Fraction of default starts that end in the basin of the limit, against prompt "
                  "length. Reported, not judged.",
       .read = true}};
}

PageTable ends_table(std::span<const Ends> ends) {
  PageTable table{
      .title = "Default start: test mean squared error at the end of SGD (not judged)",
      .sheet = {.columns = {"experiment", "model", "L", "starts", "in the limit's basin",
                            "diverged", "lowest", "quarter", "median", "three quarters", "highest",
                            "theorem's start", "Bayes"},
                .rows = {}}};
  for (const Ends& e : ends) {
    table.sheet.add(e.preset, e.model, length_text(e.L),
                    static_cast<std::int64_t>(e.mse.size()) + e.diverged, e.reached(), e.diverged,
                    quantile(e.mse, 0), quantile(e.mse, 0.25), quantile(e.mse, 0.5),
                    quantile(e.mse, 0.75), quantile(e.mse, 1), e.limit, e.bayes);
  }
  return table;
}

// A minimum, a saddle, or a point where the flow had not stopped yet.
std::string kind_of_point(const ExperimentRow& row) {
  if (row.gradient_norm.value() > 1e-4) return "not stationary yet";
  return row.falling.value() > 0 ? "saddle" : "minimum";
}

}  // namespace

std::string high_ends_text(std::span<const ExperimentRow> rows) {
  int same = 0, other = 0;
  double highest = 0;  // error of the other points, relative to the best end
  const ExperimentRow* best = nullptr;
  for (const ExperimentRow& row : rows) {
    if (row.kind != ExperimentKind::stationary) {
      best = nullptr;
    } else if (best == nullptr) {
      best = &row;  // the first of its cell
    } else if (std::abs(row.mse - best->mse) <= 0.01 * best->mse) {
      ++same;
    } else {
      ++other;
      highest = std::max(highest, row.mse / best->mse);
    }
  }
  if (same + other == 0) return "";
  std::string text = "\n\nOf " + std::to_string(same + other) +
                     " high ends the flow of the exact risk leaves " + std::to_string(same) +
                     " for the point of the best end, so SGD had stopped on a plateau there.";
  if (other > 0) {
    text += " From " + std::to_string(other) + " it goes to another point, whose error is up to " +
            brief(highest, 3) + " times as large; the last table lists them.";
  }
  return text;
}

namespace {

PageTable stationary_table(std::span<const ExperimentRow> rows) {
  PageTable table{.title =
                      "Where the flow of the exact risk goes on from the best, a typical high and "
                      "the worst end (not judged)",
                  .sheet = {.columns = {"experiment", "model", "L", "start", "mse", "|gradient|",
                                        "Hessian, lowest", "Hessian, highest", "below zero",
                                        "the point is a", "directions learned, of 5",
                                        "slope, lowest", "slope, highest", "readout on the label"},
                            .rows = {}}};
  for (const ExperimentRow& row : rows) {
    if (row.kind != ExperimentKind::stationary) continue;
    table.sheet.add(row.preset, row.model, length_text(row.L), row.start, row.mse,
                    row.gradient_norm, row.curvature_low, row.curvature_high, row.falling,
                    kind_of_point(row), row.learned, row.slope_low, row.slope_high,
                    row.label_share);
  }
  return table;
}

SectionReport report(const Options& options, std::span<const ExperimentRow> rows) {
  const std::vector<TheoremStart> curves = theorem_starts(rows);
  const std::vector<Ends> ends = ends_of(rows);
  Section section;
  section.statement =
      "The paper's figure: one attention head is trained on noisy in-context regression, dimension "
      "5, for each prompt length. From the start of the theorem, trained softmax and trained "
      "linear "
      "attention approach the infinite prompt as L grows. The authors start from PyTorch's default "
      "instead, which the theorem does not cover.";
  section.verdict = judge_experiment(curves, default_report(options, ends));
  section.text =
      "Test errors are mean squared errors of the trained parameters, averaged over tokens without "
      "a test set: 0.1 of it is label noise that nothing can predict.\n\nA default start counts as "
      "in the limit's basin if its error above the label noise is at most twice that of the "
      "theorem's start, or 8 % of what there is to predict. From the best, a typical high and the "
      "worst end the "
      "flow of the exact risk goes on until it is stationary; its gradient, the Hessian in (U, r) "
      "and the slopes of the prediction on the target say what that point is. A slope of 1 in all "
      "five directions is the limit; a slope near 0 is a direction that the head does not use." +
      high_ends_text(rows);
  section.formulas = formulas();
  section.figures = figures();
  section.tables = {judged_table(experiment_checks(curves)), ends_table(ends),
                    stationary_table(rows)};
  return {.section = std::move(section),
          .datasets = datasets(curves, ends),
          .hypotheses = hypotheses(options),
          .checks = experiment_checks(curves)};
}

}  // namespace

Statement experiment() {
  return make_statement<ExperimentRow>("experiment",
                                       "The authors' experiment: test error against prompt length",
                                       experiment_cells, report);
}

}  // namespace esscher::paper
