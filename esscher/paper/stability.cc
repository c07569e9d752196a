// Stability along training: the gradient of the finite-L risk stays close to that of the infinite
// prompt along the whole training path, and closer the longer the prompt.
#include <algorithm>
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/shared_training.h"
#include "esscher/paper/statements.h"
#include "esscher/paper/verdicts.h"
#include "esscher/training/start.h"

namespace esscher::paper {
namespace {

// ---- setting

constexpr Features kSimulated[] = {Features::rademacher, Features::uniform, Features::sphere};

std::vector<std::int64_t> exact_lengths(const Options& options) {
  if (options.size == Size::tiny) return {10, 100, 1000};
  return {10, 30, 100, 300, 1000, 10000, 100000, 1000000};
}

std::vector<std::int64_t> simulated_lengths(const Options& options) {
  if (options.size == Size::tiny) return {10, 100};
  if (options.size == Size::quick) return {10, 30, 100, 300};
  return {10, 30, 100, 300, 1000};
}

TwinSetup setup_for(const Options& options, Features features) {
  LinearRegressionTask task = regression(options);
  task.features = features;
  TwinSetup setup = twin_setup(options, task);
  setup.points = features == Features::gaussian ? 30 : options.pick(6, 12, 20);
  setup.flow.stationary = 1e-6;
  setup.flow.t_end = 50;  // features that are not Gaussian have no finite limit point
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

Vector gradient(const RiskFunction& risk, const Parametrisation& space, const Vector& theta) {
  Readout slope;
  risk(space.readout(theta), &slope);
  return space.pull_back(theta, slope);
}

std::vector<GapRow> exact_rows(const Options& options, std::int64_t L) {
  const TwinSetup setup = setup_for(options, Features::gaussian);
  const auto finite = risk_function(setup.task, ModelKind::softmax, L, setup.risk);
  const auto limit = risk_function(setup.task, ModelKind::softmax, Length::infinity(), setup.risk);
  std::vector<GapRow> rows;
  for (const FlowPoint& p : reference_flow(setup).path) {
    const Vector g = gradient(limit, setup.space, p.theta);
    const Vector gap = gradient(finite, setup.space, p.theta) - g;
    rows.push_back({.features = Features::gaussian,
                    .L = L,
                    .t = p.t,
                    .gap = gap.norm(),
                    .std_error = 0,
                    .gradient = g.norm()});
  }
  return rows;
}

// Gaps [batches, parameters] of independent batches of tasks and prompts: |mean| without the bias
// its noise adds, and its standard error.
struct Norm {
  double value = 0, std_error = 0;
};
Norm norm_of_mean(const Matrix& gaps) {
  const auto n = static_cast<double>(gaps.rows());
  const Vector mean = gaps.colwise().mean().transpose();
  const Matrix off = gaps.rowwise() - mean.transpose();
  const Matrix cov = off.transpose() * off / (n * (n - 1));
  const double square = std::max(0.0, mean.squaredNorm() - cov.trace());
  return {std::sqrt(square), std::sqrt(mean.dot(cov * mean)) / mean.norm()};
}

std::vector<GapRow> simulated_rows(const Options& options, Features features) {
  const TwinSetup setup = setup_for(options, features);
  const FlowResult path = reference_flow(setup);
  const std::vector<std::int64_t> list = simulated_lengths(options);
  const int batches = options.pick(6, 12, 16);
  const Index n = setup.space.size();
  // [length][point] -> [batches, parameters]
  std::vector<std::vector<Matrix>> gaps(list.size(),
                                        std::vector<Matrix>(path.path.size(), Matrix(batches, n)));
  for (int b = 0; b < batches; ++b) {
    RiskOptions draws = setup.risk;
    draws.stream = Stream(options.seed).split(26).split(static_cast<std::uint64_t>(b));
    const auto limit = risk_function(setup.task, ModelKind::softmax, Length::infinity(), draws);
    std::vector<Vector> at_infinity;
    for (const FlowPoint& p : path.path) {
      at_infinity.push_back(gradient(limit, setup.space, p.theta));
    }
    for (std::size_t l = 0; l < list.size(); ++l) {
      const auto finite = risk_function(setup.task, ModelKind::softmax, list[l], draws);
      for (std::size_t i = 0; i < path.path.size(); ++i) {
        gaps[l][i].row(b) =
            (gradient(finite, setup.space, path.path[i].theta) - at_infinity[i]).transpose();
      }
    }
  }
  std::vector<GapRow> rows;
  for (std::size_t l = 0; l < list.size(); ++l) {
    for (std::size_t i = 0; i < path.path.size(); ++i) {
      const Norm gap = norm_of_mean(gaps[l][i]);
      rows.push_back({.features = features,
                      .L = list[l],
                      .t = path.path[i].t,
                      .gap = gap.value,
                      .std_error = gap.std_error,
                      .gradient = path.path[i].gradient_norm});
    }
  }
  return rows;
}

Cells<GapRow> cells(const Options& options) {
  CellList<GapRow> list;
  for (const std::int64_t L : exact_lengths(options)) {
    list.add("stability/gaussian/L=" + std::to_string(L),
             [options, L] { return exact_rows(options, L); });
  }
  for (const Features features : kSimulated) {
    list.add("stability/" + std::string(name(features)),
             [options, features] { return simulated_rows(options, features); });
  }
  return std::move(list).cells();
}

// ---- numbers

std::vector<GapCurve> numbers_of(std::span<const GapRow> rows) {
  std::vector<GapCurve> out;
  for (const GapRow& row : rows) {
    if (out.empty() || out.back().features != row.features) {
      out.push_back({.features = row.features, .sup = {}});
    }
    std::vector<GradientGap>& sup = out.back().sup;
    if (sup.empty() || sup.back().L != row.L.count()) sup.push_back({.L = row.L.count()});
    GradientGap& s = sup.back();
    s.gradient = worse(s.gradient, row.gradient);
    if (row.gap < s.gap || std::isnan(s.gap)) continue;
    s.gap = row.gap;
    s.std_error = row.std_error;
    s.t = row.t;
  }
  return out;
}

double exponent_of(const GapCurve& curve) {
  std::vector<double> x, y;
  for (const GradientGap& s : curve.sup) {
    x.push_back(static_cast<double>(s.L));
    y.push_back(s.gap);
  }
  return falling_exponent(x, y);
}

// What is wrong with one curve: the gap must fall by more than four standard errors, and to less
// than half.
std::string trouble_of(const GapCurve& curve) {
  constexpr double kErrors = 4;
  const std::string where = std::string(name(curve.features)) + " features: ";
  if (curve.sup.size() < 2) return where + "the gap was not measured at two lengths";
  const GradientGap &first = curve.sup.front(), &last = curve.sup.back();
  const std::string from_to = brief(first.gap) + " at L = " + brief(first.L) + " and " +
                              brief(last.gap) + " at L = " + brief(last.L);
  const double fall = first.gap - last.gap;
  const double error = std::hypot(first.std_error, last.std_error);
  if (!(fall > 0)) return where + "the gap does not fall, it is " + from_to;
  if (!(fall > kErrors * error)) {
    return where + "the gap is " + from_to + ", but this fall of " + brief_with_error(fall, error) +
           " is not significant (less than " + brief(kErrors) + " standard errors)";
  }
  if (!(last.gap < first.gap / 2)) {
    return where + "the gap falls too little, it is " + from_to + ", more than half";
  }
  return "";
}

}  // namespace

// ---- verdict

Verdict judge_stability(std::span<const GapCurve> curves) {
  std::string trouble = curves.empty() ? "no gap was measured" : "";
  std::string exponents, exact;
  for (const GapCurve& curve : curves) {
    if (trouble.empty()) trouble = trouble_of(curve);
    if (!trouble.empty()) break;
    exponents += (exponents.empty() ? "" : ", ") + brief(exponent_of(curve)) + " (" +
                 std::string(name(curve.features)) + ")";
    if (curve.features != Features::gaussian) continue;
    const GradientGap& last = curve.sup.back();
    exact = "; at L = " + brief(last.L) + " it is " + brief(100 * last.gap / last.gradient) +
            " % of the largest gradient (Gaussian features, exact)";
  }
  return Verdict::unless(trouble, VerdictStatus::holds_fitted,
                         "The largest gradient gap along the path falls with L, with exponents " +
                             exponents + exact + ".");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string theta = paren(sub(id("θ"), op("∞")) + paren(id("t")));
  return {math(sub(id("sup"), id("t")) + op("‖") + op("∇") + sub(id("R"), id("L")) + theta +
               op("−") + op("∇") + sub(id("R"), op("∞")) + theta + op("‖") + op("→") + num("0") +
               text("   as L → ∞"))};
}

std::vector<std::string> hypotheses(const LinearRegressionTask& task) {
  return {"the path stays bounded: gradient flow of R∞ from the balanced start, up to time 50",
          "the start is in the allowed interval: α = " + brief(start_alpha(task)) + " < " +
              brief(balanced_start_bound(task)),
          "tokens are sub-Gaussian given the task: Gaussian, ±1, uniform and spherical features "
          "with identity covariance, coloured by 0.5^|i−j|"};
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
    for (const GradientGap& s : curve.sup) {
      sup.add(curve.features, s.L, s.gap, std::max(s.gap - 2 * s.std_error, s.gap / 100),
              s.gap + 2 * s.std_error);
    }
  }
  return {{"stability_paths", std::move(paths)}, {"stability_sup", std::move(sup)}};
}

std::vector<Figure> figures() {
  return {
      {.id = "paths",
       .chart = CurveChart{.data = "stability_paths",
                           .x = {.column = "t", .title = "training time t", .log = true},
                           .y = {.column = "gap", .title = "‖∇R_L − ∇R∞‖", .log = true},
                           .series = "prompt",
                           .points = false},
       .caption = "Gradient gap along the infinite-prompt training path, Gaussian features. "
                  "Longer prompts shift the whole curve down: the gap is uniform in time."},
      {.id = "sup",
       .chart = CurveChart{.data = "stability_sup",
                           .x = {.column = "L", .title = "prompt length L", .log = true},
                           .y = {.column = "gap", .title = "sup over t of the gap", .log = true},
                           .series = "features",
                           .low = "low",
                           .high = "high",
                           .height = 280},
       .caption = "The largest gap along the path against prompt length, for four kinds of "
                  "features; bands are two standard errors of the simulation."}};
}

PageTable gap_table(std::span<const GapCurve> curves) {
  PageTable table{.title = "Largest gradient gap along the path",
                  .sheet = {.columns = {"features", "L", "gap", "standard error",
                                        "gap / largest gradient", "at time t"},
                            .rows = {}}};
  for (const GapCurve& curve : curves) {
    for (const GradientGap& s : curve.sup) {
      table.sheet.add(curve.features, s.L, s.gap, s.std_error, s.gap / s.gradient, s.t);
    }
  }
  return table;
}

SectionReport report(const Options& options, std::span<const GapRow> rows) {
  const std::vector<GapCurve> curves = numbers_of(rows);
  const LinearRegressionTask task = regression(options);
  Section section;
  section.statement =
      "Training with prompts of length L follows training with infinite prompts: at every point "
      "of the infinite-prompt training path the two gradients differ by an amount that vanishes "
      "as L grows, uniformly in time. Nothing in it needs Gaussian features, only sub-Gaussian "
      "tokens.";
  section.hypotheses = hypotheses(task);
  section.verdict = judge_stability(curves);
  section.text = "The task is in-context linear regression without noise, dimension " +
                 std::to_string(task.dim) +
                 ". With Gaussian features both gradients are exact over tokens; other features "
                 "are simulated with common tasks and queries for both gradients, and the norm "
                 "is corrected for its noise.";
  section.formulas = formulas();
  section.figures = figures();
  section.tables = {gap_table(curves)};
  return {.section = std::move(section), .datasets = datasets(rows, curves)};
}

}  // namespace

Statement stability() {
  return make_statement<GapRow>(
      "stability", "Stability: gradients stay close along the whole training path", cells, report);
}

}  // namespace esscher::paper
