// One layer denoises every mixture: its matrices do not depend on the means, which it reads off the
// prompt. A map of the query alone cannot know them.
#include <cmath>
#include <numbers>

#include "esscher/base/number_text.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/mixture_statements.h"
#include "esscher/paper/shared_denoising.h"
#include "esscher/risk/layer_risk.h"

namespace esscher::paper {
namespace {

constexpr double kRadius = 2, kGamma = 0.5, kXi = 1;
constexpr double kAdaptsError = 1e-3;

// ---- rows and cells

enum class AdaptsKind { layer, swapped, bayes, affine, angle };

constexpr auto enum_names(AdaptsKind) {
  return EnumNames<AdaptsKind, 5>{"kind of row",
                                  {{{AdaptsKind::layer, "layer"},
                                    {AdaptsKind::swapped, "swapped"},
                                    {AdaptsKind::bayes, "bayes"},
                                    {AdaptsKind::affine, "affine"},
                                    {AdaptsKind::angle, "angle"}}}};
}

struct AdaptsRow {
  AdaptsKind kind = AdaptsKind::layer;
  double risk = 0, risk_error = 0;
  std::optional<double> angle = {};
  std::optional<std::string> predictor = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("kind", row.kind, "", "what the row holds");
    column("risk", row.risk, "", "half a mean squared error");
    column("risk_error", row.risk_error, "", "its quadrature error");
    column("angle", row.angle, "degrees", "direction of the means");
    column("predictor", row.predictor, "", "what predicts the clean point");
  }
};

AdaptsRow row_of(AdaptsKind kind, const Estimate& risk) {
  return {.kind = kind, .risk = risk.value, .risk_error = risk.std_error};
}

// Two means, drawn anew for every prompt on the circle of radius 2.
std::vector<AdaptsRow> drawn_means(const Options& options) {
  DenoisingTask drawn;
  drawn.gamma = kGamma;
  drawn.xi = kXi;
  drawn.means.law = MeansLaw::sphere;
  drawn.means.count = drawn.means.dim = 2;
  drawn.means.scale = kRadius;
  const ContextTask task = denoising_task(drawn);
  const RiskOptions how{.log2_nodes = options.pick(8, 13, 15), .stream = Stream(options.seed)};
  const Length L = Length::infinity();
  const ReferenceRisks known = reference_risks(task, L, how);
  return {row_of(AdaptsKind::layer, layer_risk(task, residual_layer(2, kGamma, kXi), L, how)),
          row_of(AdaptsKind::swapped, layer_risk(task, residual_layer(2, kXi, kGamma), L, how)),
          row_of(AdaptsKind::bayes, known.bayes), row_of(AdaptsKind::affine, known.affine)};
}

constexpr const char* kLayer = "the layer, which reads the prompt";
constexpr const char* kFrozen = "the best predictor for means at 0°";

// Opposite means in a direction: the layer, and the posterior mean for the direction 0.
std::vector<AdaptsRow> turned_means(const Options& options) {
  std::vector<AdaptsRow> rows;
  const auto means_at = [](double degrees) {
    const double x = degrees * std::numbers::pi / 180;
    const Vector m = (Vector(2) << kRadius * std::cos(x), kRadius * std::sin(x)).finished();
    return opposite_means(m, kGamma, kXi);
  };
  const DenoisingTask home = means_at(0);
  const Layer layer = residual_layer(2, kGamma, kXi);
  const int steps = options.pick(3, 18, 36);
  for (int i = 0; i <= steps; ++i) {
    const double degrees = 90.0 * i / steps;
    const ContextTask task = denoising_task(means_at(degrees));
    const Estimate risk =
        layer_risk(task, layer, Length::infinity(), {.stream = Stream(options.seed)});
    double frozen = 0;
    for (const WeightedNode& place : lattice_nodes(task, 0)) {
      const Vector said = denoising_posterior(home, home.means.fixed, place.node.query).mean;
      frozen +=
          0.5 * place.weight * ((said - place.node.target).squaredNorm() + place.node.variance);
    }
    rows.push_back({.kind = AdaptsKind::angle,
                    .risk = risk.value,
                    .risk_error = risk.std_error,
                    .angle = degrees,
                    .predictor = kLayer});
    rows.push_back(
        {.kind = AdaptsKind::angle, .risk = frozen, .angle = degrees, .predictor = kFrozen});
  }
  return rows;
}

Cells<AdaptsRow> cells(const Options& options) {
  CellList<AdaptsRow> list;
  list.add("adaptation/drawn", [options] { return drawn_means(options); });
  list.add("adaptation/turned", [options] { return turned_means(options); });
  return std::move(list).cells();
}

// ---- numbers

AdaptsNumbers numbers_of(std::span<const AdaptsRow> rows) {
  const auto of = [&](AdaptsKind kind) {
    for (const AdaptsRow& row : rows) {
      if (row.kind == kind) return row;
    }
    return AdaptsRow{.risk = std::nan("")};
  };
  const AdaptsRow bayes = of(AdaptsKind::bayes);
  AdaptsNumbers n;
  const auto ratio = [&](AdaptsKind kind, double& value, double& error) {
    const AdaptsRow row = of(kind);
    value = row.risk / bayes.risk;
    error = value * std::hypot(row.risk_error / row.risk, bayes.risk_error / bayes.risk);
  };
  double ignored = 0;
  ratio(AdaptsKind::layer, n.layer, n.layer_error);
  ratio(AdaptsKind::affine, n.affine, n.affine_error);
  ratio(AdaptsKind::swapped, n.swapped, ignored);
  return n;
}

}  // namespace

// ---- verdict

Checks adapts_checks(const AdaptsNumbers& n) {
  const Judged layer{.what = "the risk of the layer over that of a predictor who knows the means",
                     .value = n.layer,
                     .error = n.layer_error,
                     .expected = 1,
                     .tolerance = kAdaptsError};
  Judged affine = layer, swapped = layer;
  affine.what = "the risk of the best affine map of the query over it";
  affine.value = n.affine;
  affine.error = n.affine_error;
  swapped.what = "the risk of the layer with γ and ξ exchanged over it";
  swapped.value = n.swapped;
  return {.figures = {layer}, .controls = {affine, swapped}};
}

Verdict judge_adapts(const AdaptsNumbers& n) {
  return verdict_of(adapts_checks(n), VerdictStatus::holds,
                    "With means that are new in every prompt the layer has " + brief(n.layer) +
                        " times the risk of a predictor who knows them; the best affine map of the "
                        "query has " +
                        brief(n.affine) + " times that risk.");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string x2 = sup(id("ξ"), num("2")), g2 = sup(id("γ"), num("2"));
  const std::string S = g2 + op("+") + x2, z = id("z");
  return {math(id("out") + paren(z) + op("=") + frac(g2 + op("−") + x2, S) + z + op("+") +
               frac(x2, S) + operator_on(id("μ")) + paren(z) + and_also() + id("U") + op("=") +
               frac(num("1"), S) + id("I") + text("for every mixture") + id("μ"))};
}

SectionReport report(const Options&, std::span<const AdaptsRow> rows) {
  const AdaptsNumbers n = numbers_of(rows);
  Sheet turned{.columns = {"predictor", "angle", "risk"}, .rows = {}};
  for (const AdaptsRow& row : rows) {
    if (row.kind == AdaptsKind::angle) turned.add(row.predictor, row.angle, row.risk);
  }
  Section section;
  section.statement =
      "The denoising layer with a residual adapts in context: its matrices depend on γ and ξ "
      "alone, "
      "so on an infinite prompt it is the posterior mean for means it has not seen before.";
  section.verdict = judge_adapts(n);
  section.text =
      "Two means are drawn anew for every prompt, on the circle of radius 2. Risks are averages "
      "over "
      "means and queries by quadrature, on the infinite prompt.";
  section.formulas = formulas();
  section.figures = {
      {.id = "angle",
       .chart = CurveChart{.data = "adapts_turned",
                           .x = {.column = "angle", .title = "direction of the means (degrees)"},
                           .y = {.column = "risk", .title = "risk"},
                           .series = "predictor",
                           .points = false},
       .caption = "Risk against the direction of two opposite means. A predictor that was made for "
                  "one direction is judged on the others beside the layer.",
       .read = true}};
  section.tables = {judged_table(adapts_checks(n))};
  return {.section = std::move(section),
          .datasets = {{"adapts_turned", std::move(turned)}},
          .hypotheses = {{.text = "Means have one norm, 2; γ = 1/2, ξ = 1, dimension two.",
                          .values = {{"radius", kRadius}, {"gamma", kGamma}, {"xi", kXi}}}},
          .checks = adapts_checks(n)};
}

}  // namespace

Statement denoising_adapts() {
  return make_statement<AdaptsRow>("adaptation", "One layer denoises mixtures it has not seen",
                                   cells, report);
}

}  // namespace esscher::paper
