// Iterating the denoiser: z -> posterior mean of z, with the prompt as it is. Two clusters at ±m keep
// their points apart if and only if the centre is unstable there.
//
//   slope of the denoiser at 0 = (xi^2 m^2 / S + gamma^2) / S > 1   <=>   m^2 > S = gamma^2 + xi^2
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/mixture_statements.h"
#include "esscher/paper/shared_denoising.h"
#include "esscher/risk/layer_error.h"

namespace esscher::paper {
namespace {

constexpr double kThresholdError = 2e-3;
constexpr double kSpread = 0.75;     // gamma / xi of the control
constexpr double kSeparation = 1.5;  // m / xi where the fixed point is judged

// ---- rows and cells

enum class ClusterKind { threshold, curve };

constexpr auto enum_names(ClusterKind) {
  return EnumNames<ClusterKind, 2>{
      "kind of row", {{{ClusterKind::threshold, "threshold"}, {ClusterKind::curve, "curve"}}}};
}

struct ClusterRow {
  ClusterKind kind = ClusterKind::threshold;
  double gamma = 0, xi = 1;
  std::optional<double> threshold = {};
  std::optional<double> separation = {}, fixed_point = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("kind", row.kind, "", "what the row holds");
    column("gamma", row.gamma, "", "deviation of clean points about their mean");
    column("xi", row.xi, "", "deviation of the noise");
    column("threshold", row.threshold, "", "separation |m1 - m2|/2 xi where clusters appear");
    column("separation", row.separation, "", "|m1 - m2|/2 xi");
    column("fixed_point", row.fixed_point, "", "where iterates end, over |m1 - m2|/2");
  }
};

// Where iterates of the layer end that start a little off the centre, over m. Near the threshold they
// move slowly, so the number of iterations bounds how well it is known.
double end_of_iterates(double m, double gamma, double xi) {
  constexpr int kIterations = 20000;
  const Layer layer = residual_layer(1, gamma, xi);
  const double S = gamma * gamma + xi * xi;
  const TokenLaw law(SharedMixture{Vector::Constant(2, 0.5), (Matrix(2, 1) << m, -m).finished(),
                                   Matrix::Constant(1, 1, S)});
  Vector z = Vector::Constant(1, 1e-3 * m);
  for (int i = 0; i < kIterations; ++i) {
    const Vector next = layer_output(layer, law.measure(), z);
    if (std::abs(next(0) - z(0)) < 1e-15 * m) break;
    z = next;
  }
  return z(0) / m;
}

double threshold(double gamma, double xi) {
  double low = 0.5, high = 2;  // in units of xi
  while (high - low > 1e-4) {
    const double middle = 0.5 * (low + high);
    (end_of_iterates(middle * xi, gamma, xi) > 1e-3 ? high : low) = middle;
  }
  return 0.5 * (low + high);
}

Cells<ClusterRow> cells(const Options& options) {
  CellList<ClusterRow> list;
  const auto add_threshold = [&](double gamma, double xi) {
    list.add("clusters/threshold/" + brief(gamma) + "/" + brief(xi), [=] {
      return std::vector<ClusterRow>{{.kind = ClusterKind::threshold,
                                      .gamma = gamma,
                                      .xi = xi,
                                      .threshold = threshold(gamma, xi)}};
    });
  };
  for (const double xi : {0.5, 1.0, 2.0}) add_threshold(0, xi);
  add_threshold(kSpread, 1);
  const int points = options.pick(8, 40, 80);
  for (const double gamma : {0.0, kSpread}) {
    list.add("clusters/curve/" + brief(gamma), [=] {
      std::vector<ClusterRow> rows;
      for (int i = 0; i <= points; ++i) {
        const double m = 0.5 + 2.0 * i / points;
        rows.push_back({.kind = ClusterKind::curve,
                        .gamma = gamma,
                        .separation = m,
                        .fixed_point = end_of_iterates(m, gamma, 1)});
      }
      return rows;
    });
  }
  return std::move(list).cells();
}

// ---- numbers

// The positive root of x = tanh(s^2 x), s > 1.
double tanh_root(double s) {
  double low = 1e-6, high = 1;
  while (high - low > 1e-15) {
    const double middle = 0.5 * (low + high);
    (std::tanh(s * s * middle) > middle ? low : high) = middle;
  }
  return low;
}

ClusterNumbers numbers_of(std::span<const ClusterRow> rows) {
  ClusterNumbers n{.noisy_expected = std::sqrt(1 + kSpread * kSpread),
                   .fixed_expected = tanh_root(kSeparation)};
  for (const ClusterRow& row : rows) {
    if (row.kind == ClusterKind::threshold && row.gamma == 0) {
      n.thresholds.push_back(row.threshold.value());
    } else if (row.kind == ClusterKind::threshold) {
      n.noisy_threshold = row.threshold.value();
    } else if (row.gamma == 0 && row.separation.value() == kSeparation) {
      n.fixed_point = row.fixed_point.value();
    }
  }
  return n;
}

}  // namespace

// ---- verdict

Checks cluster_checks(const ClusterNumbers& n) {
  if (n.thresholds.empty()) return {};
  Checks out;
  Judged at{
      .what = "the separation where clusters appear", .expected = 1, .tolerance = kThresholdError};
  for (const double threshold : n.thresholds) {
    at.value = threshold;
    out.figures.push_back(at);
  }
  out.figures.push_back({.what = "the fixed point at a separation of 1.5",
                         .value = n.fixed_point,
                         .expected = n.fixed_expected,
                         .tolerance = 1e-9});
  out.figures.push_back({.what = "the separation where spread clusters appear",
                         .value = n.noisy_threshold,
                         .expected = n.noisy_expected,
                         .tolerance = kThresholdError});
  at.what = "the separation where spread clusters appear, in units of ξ alone";
  at.value = n.noisy_threshold;
  out.controls = {at};
  return out;
}

Verdict judge_clusters(const ClusterNumbers& n) {
  return verdict_of(cluster_checks(n), VerdictStatus::holds,
                    "Iterates leave the centre from a separation of " +
                        (n.thresholds.empty() ? std::string("?") : brief(n.thresholds.front())) +
                        " on, and end at " + brief(n.fixed_point) +
                        " of the way to the means at a separation of 1.5.");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string m1 = sub(id("m"), num("1")), m2 = sub(id("m"), num("2"));
  return {math(text("two clusters") + op("⇔") + frac(norm(m1 + op("−") + m2), num("2") + id("ξ")) +
               op(">") + num("1") + text("for") + id("γ") + op("=") + num("0"))};
}

SectionReport report(const Options&, std::span<const ClusterRow> rows) {
  const ClusterNumbers n = numbers_of(rows);
  Sheet curve{.columns = {"clean points", "separation", "fixed point"}, .rows = {}};
  for (const ClusterRow& row : rows) {
    if (row.kind != ClusterKind::curve) continue;
    curve.add(row.gamma == 0 ? "at the means (γ = 0)" : "spread, γ = " + brief(row.gamma),
              row.separation, row.fixed_point);
  }
  Section section;
  section.statement =
      "The denoising layer, applied again and again to its own output with the prompt as it is, "
      "separates two clusters if and only if their means are further apart than twice the "
      "deviation "
      "ξ of the noise. This is for clean points at the means; if they are spread with deviation γ, "
      "the deviation √(γ² + ξ²) of the tokens takes the place of ξ.";
  section.verdict = judge_clusters(n);
  section.text =
      "A point that starts a thousandth of the way to a mean is moved until it rests. The "
      "threshold "
      "is found by bisection and does not use the slope at the centre.";
  section.formulas = formulas();
  section.figures = {
      {.id = "fixed",
       .chart = CurveChart{.data = "cluster_curves",
                           .x = {.column = "separation", .title = "separation |m₁ − m₂|/2ξ"},
                           .y = {.column = "fixed point", .title = "end of the iterates, over m"},
                           .series = "clean points",
                           .references = {{'x', 1, "threshold"}}},
       .caption = "Where iterates end that start near the centre, against the separation of the "
                  "means, ξ = 1.",
       .read = true}};
  section.tables = {judged_table(cluster_checks(n))};
  return {.section = std::move(section),
          .datasets = {{"cluster_curves", std::move(curve)}},
          .hypotheses = {{.text = "Two means ±m of equal weight in dimension one, infinite prompt.",
                          .values = {{"gamma of spread points", kSpread}}}},
          .checks = cluster_checks(n)};
}

}  // namespace

Statement denoising_clusters() {
  return make_statement<ClusterRow>("clusters", "Iterating the denoiser: when clusters form", cells,
                                    report);
}

}  // namespace esscher::paper
