// Stability along training: the gradient of the finite-L risk stays close to that of the infinite
// prompt along the whole training path, and closer the longer the prompt.
#include <algorithm>
#include <cmath>

#include "esscher/paper/statements.h"
#include "esscher/paper/text.h"
#include "esscher/paper/training.h"
#include "esscher/report/vega_lite.h"
#include "esscher/risk/closed_form.h"

namespace esscher::paper {
namespace {

constexpr std::string_view kId = "stability";
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

std::vector<std::string> keys(const Options& options) {
  std::vector<std::string> out;
  for (const std::int64_t L : exact_lengths(options)) {
    out.push_back("stability/gaussian/L=" + std::to_string(L));
  }
  for (const Features f : kSimulated) out.push_back("stability/" + std::string(name(f)));
  return out;
}

Vector gradient(const RiskFunction& risk, const Parametrisation& space, const Vector& theta) {
  Readout slope;
  risk(space.readout(theta), &slope);
  return space.pull_back(theta, slope);
}

TwinSetup setup_for(const Options& options, Features features) {
  LinearRegressionTask task = regression(options);
  task.features = features;
  TwinSetup setup = twin_setup(options, task, ParameterSpace::block);
  setup.points = features == Features::gaussian ? 30 : options.pick(6, 12, 20);
  setup.flow.stationary = 1e-6;
  setup.flow.t_end = 50;  // features that are not Gaussian have no finite limit point
  return setup;
}

Row gap_row(Features features, std::int64_t L, double t, double gap, double error, double size) {
  return {{"section", kId}, {"features", name(features)}, {"L", L},          {"t", t},
          {"gap", gap},     {"std_error", error},         {"gradient", size}};
}

std::vector<Row> exact_rows(const Options& options, std::int64_t L) {
  const TwinSetup setup = setup_for(options, Features::gaussian);
  const auto finite = risk_function(setup.task, ModelKind::softmax, L, setup.risk);
  const auto limit = risk_function(setup.task, ModelKind::softmax, Length::infinity(), setup.risk);
  std::vector<Row> rows;
  for (const FlowPoint& p : reference_flow(setup).path) {
    const Vector g = gradient(limit, setup.space, p.theta);
    const Vector gap = gradient(finite, setup.space, p.theta) - options.sign(kId) * g;
    rows.push_back(gap_row(Features::gaussian, L, p.t, gap.norm(), 0, g.norm()));
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

std::vector<Row> simulated_rows(const Options& options, Features features) {
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
      at_infinity.push_back(options.sign(kId) * gradient(limit, setup.space, p.theta));
    }
    for (std::size_t l = 0; l < list.size(); ++l) {
      const auto finite = risk_function(setup.task, ModelKind::softmax, list[l], draws);
      for (std::size_t i = 0; i < path.path.size(); ++i) {
        gaps[l][i].row(b) =
            (gradient(finite, setup.space, path.path[i].theta) - at_infinity[i]).transpose();
      }
    }
  }
  std::vector<Row> rows;
  for (std::size_t l = 0; l < list.size(); ++l) {
    for (std::size_t i = 0; i < path.path.size(); ++i) {
      const Norm gap = norm_of_mean(gaps[l][i]);
      rows.push_back(gap_row(features, list[l], path.path[i].t, gap.value, gap.std_error,
                             path.path[i].gradient_norm));
    }
  }
  return rows;
}

std::vector<Row> compute(const Options& options, std::size_t cell) {
  const std::vector<std::int64_t> list = exact_lengths(options);
  if (cell < list.size()) return exact_rows(options, list[cell]);
  return simulated_rows(options, kSimulated[cell - list.size()]);
}

struct Sup {
  std::string features;
  std::int64_t L = 0;
  double gap = 0, std_error = 0, t = 0, gradient = 0;
};

std::vector<Sup> sups(const std::vector<Row>& rows) {
  std::vector<Sup> out;
  for (const Row& row : rows) {
    const std::string features = row["features"];
    const std::int64_t L = row["L"];
    if (out.empty() || out.back().features != features || out.back().L != L) {
      out.push_back({features, L});
    }
    Sup& s = out.back();
    s.gradient = std::max(s.gradient, row["gradient"].get<double>());
    if (row["gap"].get<double>() < s.gap) continue;
    s.gap = row["gap"], s.std_error = row["std_error"], s.t = row["t"];
  }
  return out;
}

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string theta = paren(sub(id("θ"), op("∞")) + paren(id("t")));
  return {math(sub(id("sup"), id("t")) + op("‖") + op("∇") + sub(id("R"), id("L")) + theta +
               op("−") + op("∇") + sub(id("R"), op("∞")) + theta + op("‖") + op("→") + num("0") +
               text("   as L → ∞"))};
}

SectionReport report(const Options& options, const std::vector<Row>& rows) {
  const std::vector<Sup> all = sups(rows);
  Json paths = Json::array(), points = Json::array(), table = Json::array();
  for (const Row& row : rows) {
    if (row["features"] != "gaussian" || row["t"].get<double>() <= 0) continue;
    paths.push_back({{"prompt", "L = " + show(row["L"].get<std::int64_t>())},
                     {"L", row["L"]},
                     {"t", row["t"]},
                     {"gap", row["gap"]}});
  }
  std::map<std::string, std::vector<Sup>> by;
  for (const Sup& s : all) {
    by[s.features].push_back(s);
    points.push_back({{"features", s.features},
                      {"L", s.L},
                      {"gap", s.gap},
                      {"low", std::max(s.gap - 2 * s.std_error, s.gap / 100)},
                      {"high", s.gap + 2 * s.std_error}});
    table.push_back({s.features, s.L, s.gap, s.std_error, s.gap / s.gradient, s.t});
  }
  std::string trouble;
  std::string exponents;
  for (const auto& [features, list] : by) {
    std::vector<double> x, y;
    for (const Sup& s : list) x.push_back(static_cast<double>(s.L)), y.push_back(s.gap);
    const Sup &first = list.front(), &last = list.back();
    const double noise = 4 * std::hypot(first.std_error, last.std_error);
    if (!(first.gap - last.gap > noise) || !(last.gap < first.gap / 2)) {
      trouble = features + " features: the gap is " + show(first.gap) + " at L = " + show(first.L) +
                " and still " + show(last.gap) + " at L = " + show(last.L);
    }
    exponents +=
        (exponents.empty() ? "" : ", ") + show(falling_exponent(x, y)) + " (" + features + ")";
  }
  const Sup& last = by["gaussian"].back();
  const std::string good = "The largest gradient gap along the path falls with L, with exponents " +
                           exponents + "; at L = " + show(last.L) + " it is " +
                           show(100 * last.gap / last.gradient) +
                           " % of the largest gradient (Gaussian features, exact).";
  const LinearRegressionTask task = regression(options);
  Json section = {
      {"statement",
       "Training with prompts of length L follows training with infinite prompts: at every point "
       "of the infinite-prompt training path the two gradients differ by an amount that vanishes "
       "as L grows, uniformly in time. Nothing in it needs Gaussian features, only sub-Gaussian "
       "tokens."},
      {"hypotheses",
       {"the path stays bounded: gradient flow of R∞ from the balanced start, up to time 50",
        "the start is in the allowed interval: α = " + show(start_alpha(task)) + " < " +
            show(balanced_start_bound(task)),
        "tokens are sub-Gaussian given the task: Gaussian, ±1, uniform and spherical features with "
        "identity covariance, coloured by 0.5^|i−j|"}},
      {"verdict", verdict("holds-fitted", good, trouble)},
      {"text", "The task is in-context linear regression without noise, dimension " +
                   std::to_string(task.dim) +
                   ". With Gaussian features both gradients are exact over tokens; other features "
                   "are simulated with common tasks and queries for both gradients, and the norm "
                   "is corrected for its noise."},
      {"formulas", formulas()},
      {"figures",
       {{{"id", "paths"},
         {"caption",
          "Gradient gap along the infinite-prompt training path, Gaussian features. Longer prompts "
          "shift the whole curve down: the gap is uniform in time."},
         {"spec", curve_chart({.data = "stability_paths",
                               .x = {.column = "t", .title = "training time t", .log = true},
                               .y = {.column = "gap", .title = "‖∇R_L − ∇R∞‖", .log = true},
                               .series = "prompt",
                               .points = false})}},
        {{"id", "sup"},
         {"caption",
          "The largest gap along the path against prompt length, for four kinds of features; bands "
          "are two standard errors of the simulation."},
         {"spec",
          curve_chart({.data = "stability_sup",
                       .x = {.column = "L", .title = "prompt length L", .log = true},
                       .y = {.column = "gap", .title = "sup over t of the gap", .log = true},
                       .series = "features",
                       .low = "low",
                       .high = "high",
                       .height = 280})}}}},
      {"tables",
       {{{"title", "Largest gradient gap along the path"},
         {"columns",
          {"features", "L", "gap", "standard error", "gap / largest gradient", "at time t"}},
         {"rows", table}}}}};
  return {section, {{"stability_paths", paths}, {"stability_sup", points}}};
}

}  // namespace

Section stability() {
  return {kId, "Stability: gradients stay close along the whole training path", keys, compute,
          report};
}

}  // namespace esscher::paper
