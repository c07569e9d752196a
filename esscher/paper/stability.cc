// Stability along training: the gradient of the finite-L risk stays close to that of the infinite
// prompt along the whole training path, and closer the longer the prompt.
#include <algorithm>
#include <cmath>
#include <utility>

#include "esscher/base/number_text.h"
#include "esscher/paper/feature_gaps.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/shared_training.h"
#include "esscher/paper/statements.h"
#include "esscher/paper/verdicts.h"
#include "esscher/training/gradient_gap.h"
#include "esscher/training/start.h"

namespace esscher::paper {
namespace {

// ---- setting

constexpr Features kBounded[] = {Features::rademacher, Features::uniform, Features::sphere};

std::vector<std::int64_t> exact_lengths(const Options& options) {
  if (options.size == Size::tiny) return {10, 100, 1000};
  return {10, 30, 100, 300, 1000, 10000, 100000, 1000000};
}

std::vector<std::int64_t> bounded_lengths(const Options& options) {
  if (options.size == Size::tiny) return {10, 100};
  return {10, 100, 1000, 1000000};
}

// Times at which gradients are compared, 0.02 .. 50; tests/paper/independent.py has the same ones.
std::vector<double> times() {
  std::vector<double> out;
  for (int i = 0; i < 24; ++i) out.push_back(0.02 * std::pow(2500.0, i / 23.0));
  return out;
}

// Every fourth of them; those at 7, 15 and 23 have independent values.
std::vector<double> bounded_times(const Options& options) {
  std::vector<double> out;
  for (std::size_t i = options.size == Size::tiny ? 7 : 3; i < times().size();
       i += options.size == Size::tiny ? 8 : 4) {
    out.push_back(times()[i]);
  }
  return out;
}

LinearRegressionTask task_with(const Options& options, Features features) {
  LinearRegressionTask task = regression(options);
  task.features = features;
  return task;
}

TwinSetup gaussian_setup(const Options& options) {
  TwinSetup setup = twin_setup(options, task_with(options, Features::gaussian));
  setup.flow.stationary = 0;
  setup.flow.t_end = 50;  // features that are not Gaussian have no finite limit point
  setup.flow.times = times();
  return setup;
}

// ---- rows and cells

struct GapRow {
  Features features = Features::gaussian;
  Length L = 1;
  double t = 0;
  double gap = 0;
  double std_error = 0;
  double gradient = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("features", row.features, "", "law of the features");
    column("L", row.L, "tokens", "length of the prompt");
    column("t", row.t, "", "training time");
    column("gap", row.gap, "", "distance of the gradients at L and at infinity");
    column("std_error", row.std_error, "", "standard error");
    column("gradient", row.gradient, "", "norm of the gradient at infinity");
  }
};

// The gaps at this length along the path of the infinite prompt.
std::vector<GapRow> gaussian_rows(const Options& options, std::int64_t L) {
  const TwinSetup setup = gaussian_setup(options);
  const FlowResult flow = gradient_flow(setup, ModelKind::softmax, Length::infinity());
  FlowSetup nets = setup;
  // Sharp queries need more nodes than a flow does.
  nets.risk.log2_nodes = options.pick(11, 12, 14);
  nets.risk.stream = Stream(options.seed).split(26);
  const GradientGap gap_at(nets, ModelKind::softmax, L);
  std::vector<GapRow> rows;
  for (const FlowPoint& p : flow.path) {
    const Estimate gap = gap_at(p.theta);
    rows.push_back({.features = Features::gaussian,
                    .L = L,
                    .t = p.t,
                    .gap = gap.value,
                    .std_error = gap.std_error,
                    .gradient = p.gradient_norm});
  }
  return rows;
}

// The gaps of all lengths at this time of the path.
std::vector<GapRow> bounded_rows(const Options& options, Features features, double t) {
  const LinearRegressionTask task = task_with(options, features);
  const FeatureGaps gaps(task);
  const Vector theta = gaps.path(start_alpha(task), t);
  const double gradient = gaps.limit_gradient(theta).norm();
  std::vector<GapRow> rows;
  for (const FeatureGap& g : gaps.gaps(theta, bounded_lengths(options))) {
    rows.push_back({.features = features,
                    .L = g.L,
                    .t = t,
                    .gap = g.gap,
                    .std_error = g.error,
                    .gradient = gradient});
  }
  return rows;
}

Cells<GapRow> cells(const Options& options) {
  CellList<GapRow> list;
  const std::string gaussian = "stability/" + std::string(name(Features::gaussian));
  for (const std::int64_t L : exact_lengths(options)) {
    list.add(gaussian + "/L=" + std::to_string(L),
             [options, L] { return gaussian_rows(options, L); });
  }
  for (const Features features : kBounded) {
    for (const double t : bounded_times(options)) {
      list.add("stability/" + std::string(name(features)) + "/t=" + to_text(t),
               [options, features, t] { return bounded_rows(options, features, t); });
    }
  }
  return std::move(list).cells();
}

// ---- numbers

std::vector<GapCurve> numbers_of(const Options& options, std::span<const GapRow> rows) {
  const std::string gap = "gap d=" + std::to_string(regression(options).dim);
  std::vector<GapRow> by_length(rows.begin(), rows.end());
  std::stable_sort(by_length.begin(), by_length.end(), [](const GapRow& a, const GapRow& b) {
    return std::pair(a.features, a.L.count()) < std::pair(b.features, b.L.count());
  });
  std::vector<GapCurve> out;
  for (const GapRow& row : by_length) {
    const std::string key =
        row.features == Features::gaussian ? gap : std::string(name(row.features)) + " " + gap;
    if (out.empty() || out.back().features != row.features) {
      out.push_back({.features = row.features});
    }
    const std::int64_t L = row.L.count();
    GapPoint at{
        .L = L, .t = row.t, .gap = row.gap, .error = row.std_error, .gradient = row.gradient};
    if (row.t > 0 && has_independent(key, row.t, L)) {
      at.expected = independent(key, row.t, L);
      out.back().judged.push_back(at);
    }
    std::vector<GapPoint>& sup = out.back().sup;
    if (sup.empty() || sup.back().L != L) {
      sup.push_back(at);
    } else if (is_worse(row.gap, sup.back().gap)) {
      sup.back() = at;
    }
  }
  return out;
}

std::string features_name(Features features) {
  switch (features) {
    case Features::gaussian: return "Gaussian features";
    case Features::rademacher: return "±1 features";
    case Features::uniform: return "uniform features";
    case Features::sphere: break;
  }
  return "spherical features";
}

// The largest independent value at this length.
double sup_expected(const GapCurve& curve, std::int64_t L) {
  double out = 0;
  for (const GapPoint& g : curve.judged) {
    if (g.L == L) out = std::max(out, g.expected->value);
  }
  return out;
}

}  // namespace

// ---- verdict

Checks stability_checks(std::span<const GapCurve> curves) {
  Checks out;
  for (const GapCurve& curve : curves) {
    if (curve.judged.empty()) {
      out.conditions.push_back({.what = features_name(curve.features) + " were not judged"});
      continue;
    }
    const std::string with = " with " + features_name(curve.features);
    for (const GapPoint& g : curve.judged) {
      // Far below the largest gap a point says nothing about uniformity, and its error is large.
      if (g.expected->value < kGapFloor * sup_expected(curve, g.L)) continue;
      out.figures.push_back(
          against_independent("the gap at L = " + brief(g.L) + ", t = " + brief(g.t) + with, g.gap,
                              g.error, kGapTolerance, *g.expected));
    }
    std::vector<std::int64_t> L;
    std::vector<double> sup;
    for (const GapPoint& g : curve.sup) {
      L.push_back(g.L);
      sup.push_back(g.gap);
    }
    must_fall(out, "the largest gap along the path" + with, L, sup);
    for (std::size_t i = 0; i + 1 < curve.sup.size(); ++i) {
      const GapPoint& g = curve.sup[i];
      Judged control = {.what = "the largest gap at L = " + brief(g.L) +
                                " taken for that at L = " + brief(curve.sup[i + 1].L) + with,
                        .value = g.gap,
                        .error = g.error,
                        .expected = sup_expected(curve, curve.sup[i + 1].L),
                        .source = Source::independent,
                        .tolerance = kGapTolerance};
      out.controls.push_back(std::move(control));
    }
  }
  return out;
}

Verdict judge_stability(std::span<const GapCurve> curves) {
  std::string text = "The largest gradient gap along the path falls from length to length";
  for (const GapCurve& curve : curves) {
    if (curve.judged.empty() || curve.sup.empty()) continue;
    const GapPoint& last = curve.sup.back();
    double gradient = 0;
    for (const GapPoint& g : curve.judged) gradient = worse(gradient, g.gradient);
    text += "; with " + features_name(curve.features) + " it is " +
            (last.error > 0 ? brief_with_error(last.gap, last.error) : brief(last.gap)) +
            " at L = " + brief(last.L) + ", " + brief(100 * last.gap / gradient) +
            " % of the largest gradient";
  }
  return verdict_of(stability_checks(curves), VerdictStatus::holds, text + ".");
}

std::string gap_fall_text(std::span<const GapCurve> curves) {
  std::string out;
  bool fell = false;  // so that "falls" is not said again
  for (const GapCurve& curve : curves) {
    if (curve.sup.size() < 2) continue;
    const GapPoint &a = curve.sup[curve.sup.size() - 2], &b = curve.sup.back();
    const Exponent fall = exponent_between(static_cast<double>(a.L), a.gap, a.error,
                                           static_cast<double>(b.L), b.gap, b.error);
    out += out.empty() ? " Between the last two lengths it " : ", ";
    const std::string falls = fell ? "like L^{−" : "falls like L^{−";
    fell = fall.value > 0;
    out += fell ? falls + brief(fall.value, 2) + "}" : "does not fall";
    out += " with " + features_name(curve.features);
  }
  return out.empty() ? out : out + ".";
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string theta = paren(sub(id("θ"), op("∞")) + paren(id("t")));
  return {math(sub(id("sup"), id("t")) +
               norm(op("∇") + sub(id("R"), id("L")) + theta + op("−") + op("∇") +
                    sub(id("R"), op("∞")) + theta) +
               op("→") + num("0") + as_L_grows())};
}

std::vector<StatedHypothesis> hypotheses(const LinearRegressionTask& task) {
  const double alpha = start_alpha(task), bound = balanced_start_bound(task);
  return {{.text = "The path stays bounded: it is the gradient flow of R∞ from the balanced start, "
                   "up to time 50.",
           .values = {{"end of the path", 50}}},
          {.text = "The start is in the allowed interval: α = " + brief(alpha) + " is below " +
                   brief(bound) + ".",
           .values = {{"alpha", alpha}, {"bound", bound}},
           .holds = alpha < bound},
          {.text = "Tokens are sub-Gaussian given the task: Gaussian, ±1, uniform and spherical "
                   "features of unit variance, coloured by the covariance 0.5^{|i−j|}.",
           .values = {{"dimension", static_cast<double>(task.dim)}}}};
}

std::map<std::string, Sheet> datasets(std::span<const GapRow> rows,
                                      std::span<const GapCurve> curves) {
  Sheet paths{.columns = {"prompt", "L", "t", "gap"}, .rows = {}};
  for (const GapRow& row : rows) {
    if (row.features != Features::gaussian || row.t <= 0) continue;
    const std::int64_t L = row.L.count();
    paths.add("L = " + brief(L), L, row.t, row.gap);
  }
  Sheet sup{.columns = {"features", "L", "gap", "low", "high"}, .rows = {}};
  for (const GapCurve& curve : curves) {
    for (const GapPoint& s : curve.sup) {
      sup.add(features_name(curve.features), s.L, s.gap, s.gap - 2 * s.error, s.gap + 2 * s.error);
    }
  }
  return {{"stability_paths", std::move(paths)}, {"stability_sup", std::move(sup)}};
}

std::vector<Figure> figures(std::span<const GapCurve> curves) {
  return {
      {.id = "paths",
       .chart = CurveChart{.data = "stability_paths",
                           .x = {.column = "t", .title = "training time t", .log = true},
                           .y = {.column = "gap", .title = "gap of the two gradients", .log = true},
                           .series = "prompt",
                           .points = false},
       .caption = "Gradient gap along the infinite-prompt training path, Gaussian features.",
       .read = true},
      {.id = "sup",
       .chart =
           CurveChart{.data = "stability_sup",
                      .x = {.column = "L", .title = "prompt length L", .log = true},
                      .y = {.column = "gap", .title = "largest gap along the path", .log = true},
                      .series = "features",
                      .low = "low",
                      .high = "high"},
       .caption = "The largest gap along the path against prompt length, by the law of "
                  "features; bands are twice the quadrature error, where that is wider than a "
                  "line." +
                  gap_fall_text(curves)}};
}

PageTable gap_table(std::span<const GapCurve> curves) {
  PageTable table{
      .title = "Largest gradient gap along the path",
      .sheet = {.columns = {"features", "L", "gap", "error", "gap / gradient there", "at time t"},
                .rows = {}}};
  for (const GapCurve& curve : curves) {
    for (const GapPoint& s : curve.sup) {
      table.sheet.add(features_name(curve.features), s.L, s.gap, s.error, s.gap / s.gradient, s.t);
    }
  }
  return table;
}

SectionReport report(const Options& options, std::span<const GapRow> rows) {
  const std::vector<GapCurve> curves = numbers_of(options, rows);
  const LinearRegressionTask task = regression(options);
  Section section;
  section.statement =
      "Training with prompts of length L follows training with infinite prompts: at every point "
      "of the infinite-prompt training path the two gradients differ by an amount that vanishes "
      "as L grows, uniformly in time, for sub-Gaussian tokens.";
  section.verdict = judge_stability(curves);
  section.text =
      "The task is in-context linear regression without noise, dimension " +
      std::to_string(task.dim) +
      ". Gradients are averaged over prompts without sampling. With Gaussian features tasks and "
      "queries are independent nets of quadrature nodes, and the norm is corrected for their "
      "noise. Other features have score laws: tasks average out, queries are all signs or nodes "
      "of a product rule, and the error is what a coarser rule would change.";
  section.formulas = formulas();
  section.figures = figures(curves);
  section.tables = {judged_table(stability_checks(curves)), gap_table(curves)};
  return {.section = std::move(section),
          .datasets = datasets(rows, curves),
          .hypotheses = hypotheses(task),
          .checks = stability_checks(curves)};
}

}  // namespace

Statement stability() {
  return make_statement<GapRow>(
      "stability", "Stability: gradients stay close along the whole training path", cells, report);
}

}  // namespace esscher::paper
