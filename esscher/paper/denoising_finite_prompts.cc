// Ours: what the denoising layer of the infinite prompt loses at finite length, how fast, against
// which length an affine map of the query is better, and the cooler layer that is best instead.
//
// The layer has lambda = 1: scores of a query have the variance of the query itself, so rare queries
// see a frozen softmax. With x = |z|/sqrt S, ell = log L and mu = m/sqrt S, a query x has density
// e^{-(x - mu)^2/2} and an error e^{-(ell/x - x/2)^2/2}, and Laplace's method gives the exponent.
#include <boost/math/tools/minima.hpp>
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/mixture_statements.h"
#include "esscher/paper/shared_denoising.h"
#include "esscher/risk/layer_risk.h"

namespace esscher::paper {
namespace {

constexpr double kMean = 2, kGamma = 0.5, kXi = 1;  // tests/paper/mixtures.py has the same
constexpr double kVariance = kGamma * kGamma + kXi * kXi;
constexpr double kFiniteTolerance = 1e-3;
constexpr double kFactorTolerance = 5e-3;
constexpr double kExponentTolerance = 0.1;

// ---- rows and cells

enum class FiniteKind { limit_layer, cool_layer, affine, crossing };

constexpr auto enum_names(FiniteKind) {
  return EnumNames<FiniteKind, 4>{"kind of row",
                                  {{{FiniteKind::limit_layer, "limit_layer"},
                                    {FiniteKind::cool_layer, "cool_layer"},
                                    {FiniteKind::affine, "affine"},
                                    {FiniteKind::crossing, "crossing"}}}};
}

struct FiniteRow {
  FiniteKind kind = FiniteKind::limit_layer;
  std::optional<std::int64_t> L = {};
  std::optional<double> excess = {}, excess_error = {}, factor = {}, crossing = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("kind", row.kind, "", "what the row holds");
    column("L", row.L, "tokens", "length of the prompt");
    column("excess", row.excess, "", "risk above the least risk");
    column("excess_error", row.excess_error, "", "its quadrature error");
    column("factor", row.factor, "", "what U is multiplied by in the best cool layer");
    column("crossing", row.crossing, "tokens", "where the limit's layer overtakes the affine map");
  }
};

struct Setting {
  ContextTask task;
  Layer layer;
  double bayes = 0, affine = 0;  // the second is an excess
};

Setting setting_of() {
  Setting out{denoising_task(opposite_means(Vector::Constant(1, kMean), kGamma, kXi)),
              residual_layer(1, kGamma, kXi)};
  const ReferenceRisks known = reference_risks(out.task, Length::infinity(), {});
  out.bayes = known.bayes.value;
  out.affine = known.affine.value - known.bayes.value;
  return out;
}

LengthPoint limit_layer_at(const Setting& s, std::int64_t L) {
  const Estimate risk = layer_risk(s.task, s.layer, Length(L), {});
  return {L, risk.value - s.bayes, risk.std_error};
}

// The best V and W for U multiplied by a factor: the risk is a polynomial of degree two in them, known
// from its gradient at three points.
double profiled(const LayerRiskFunction& risk, Layer at, double factor) {
  at.heads[0].U *= factor;
  const auto gradient = [&](double v, double w) {
    at.heads[0].V(0, 0) = v;
    at.W(0, 0) = w;
    Layer g = at.zero();
    (void)risk(at, &g);
    return Eigen::Vector2d(g.heads[0].V(0, 0), g.W(0, 0));
  };
  const Eigen::Vector2d g0 = gradient(0, 0), gv = gradient(1, 0) - g0, gw = gradient(0, 1) - g0;
  const double det = gv(0) * gw(1) - gw(0) * gv(1);
  at.heads[0].V(0, 0) = (-g0(0) * gw(1) + gw(0) * g0(1)) / det;
  at.W(0, 0) = (-gv(0) * g0(1) + g0(0) * gv(1)) / det;
  return risk(at, nullptr);
}

CoolPoint cool_layer_at(const Setting& s, std::int64_t L) {
  const LayerRiskFunction risk = layer_risk_function(s.task, s.layer, Length(L), {});
  const auto best = boost::math::tools::brent_find_minima(
      [&](double factor) { return profiled(risk, s.layer, factor); }, 0.3, 1.05, 20);
  return {L, best.first, best.second - s.bayes};
}

// The real length between two neighbours where log excess meets that of the affine map.
double crossing_of(const Setting& s) {
  std::int64_t low = 10, high = 100000;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (limit_layer_at(s, middle).excess > s.affine ? low : high) = middle;
  }
  const double a = std::log(limit_layer_at(s, low).excess / s.affine);
  const double b = std::log(limit_layer_at(s, high).excess / s.affine);
  return static_cast<double>(low) + a / (a - b);
}

constexpr std::int64_t kLengths[] = {10, 100, 1000, 10000, 1000000, 1000000000, 1000000000000};
constexpr std::int64_t kCoolLengths[] = {10000, 1000000};

Cells<FiniteRow> cells(const Options& options) {
  CellList<FiniteRow> list;
  for (const std::int64_t L : kLengths) {
    list.add("cooling/limit/" + std::to_string(L), [L] {
      const LengthPoint at = limit_layer_at(setting_of(), L);
      return std::vector<FiniteRow>{
          {.kind = FiniteKind::limit_layer, .L = L, .excess = at.excess, .excess_error = at.error}};
    });
  }
  for (const std::int64_t L : kCoolLengths) {
    if (options.size == Size::tiny && L > 10000) continue;
    list.add("cooling/cool/" + std::to_string(L), [L] {
      const CoolPoint at = cool_layer_at(setting_of(), L);
      return std::vector<FiniteRow>{
          {.kind = FiniteKind::cool_layer, .L = L, .excess = at.excess, .factor = at.factor}};
    });
  }
  list.add("cooling/affine", [] {
    const Setting s = setting_of();
    return std::vector<FiniteRow>{{.kind = FiniteKind::affine, .excess = s.affine},
                                  {.kind = FiniteKind::crossing, .crossing = crossing_of(s)}};
  });
  return std::move(list).cells();
}

// ---- numbers

FiniteNumbers numbers_of(std::span<const FiniteRow> rows) {
  FiniteNumbers n;
  for (const FiniteRow& row : rows) {
    switch (row.kind) {
      case FiniteKind::limit_layer:
        n.at.push_back({row.L.value(), row.excess.value(), row.excess_error.value()});
        break;
      case FiniteKind::cool_layer:
        n.cool.push_back({row.L.value(), row.factor.value(), row.excess.value()});
        break;
      case FiniteKind::crossing: n.crossing = row.crossing.value(); break;
      case FiniteKind::affine: break;
    }
  }
  return n;
}

Exponent last_exponent(const FiniteNumbers& n) {
  const LengthPoint &a = n.at[n.at.size() - 2], &b = n.at.back();
  return exponent_between(static_cast<double>(a.L), a.excess, a.error, static_cast<double>(b.L),
                          b.excess, b.error);
}

// log L in the middle of the last two lengths.
double last_middle(const FiniteNumbers& n) {
  return 0.5 * (std::log(static_cast<double>(n.at[n.at.size() - 2].L)) +
                std::log(static_cast<double>(n.at.back().L)));
}

}  // namespace

double laplace_exponent(double ell, double mu) {
  const auto f = [&](double x) {
    const double freeze = ell / x - x / 2;
    return (x - mu) * (x - mu) / 2 + freeze * freeze / 2;
  };
  // Between the typical query and the one whose softmax is frozen.
  const double x =
      boost::math::tools::brent_find_minima(f, std::max(mu, 0.1), std::sqrt(2 * ell), 40).first;
  return (ell / x - x / 2) / x;
}

// ---- verdict

Checks finite_checks(const FiniteNumbers& n) {
  if (n.at.size() < 2) return {};
  Checks out;
  std::vector<std::int64_t> lengths;
  std::vector<double> values;
  for (const LengthPoint& at : n.at) {
    lengths.push_back(at.L);
    values.push_back(at.excess);
    out.figures.push_back(against_independent(
        "the excess of the limit's layer at L = " + brief(static_cast<double>(at.L)), at.excess,
        at.error, kFiniteTolerance, independent("denoising excess", 0, at.L)));
  }
  must_fall(out, "the excess of the limit's layer", lengths, values);
  for (const CoolPoint& at : n.cool) {
    const std::string where = " at L = " + brief(static_cast<double>(at.L));
    out.figures.push_back(against_independent("the factor of the best cool layer" + where,
                                              at.factor, 0, kFactorTolerance,
                                              independent("denoising cool factor", 0, at.L)));
    out.figures.push_back(against_independent("the excess of the best cool layer" + where,
                                              at.excess, 0, kFiniteTolerance,
                                              independent("denoising cool excess", 0, at.L)));
    out.conditions.push_back(
        {"the best layer is not cooler than the limit's" + where, at.factor > 0 && at.factor < 1});
  }
  out.figures.push_back(
      against_independent("the length where the limit's layer overtakes the affine map", n.crossing,
                          0, kFiniteTolerance, independent("denoising crossing", 0, 0)));
  const Exponent measured = last_exponent(n);
  Judged exponent{.what = "the exponent between the last two lengths",
                  .value = measured.value,
                  .error = measured.error,
                  .expected = laplace_exponent(last_middle(n), kMean / std::sqrt(kVariance)),
                  .source = Source::exponent,
                  .tolerance = kExponentTolerance};
  out.figures.push_back(exponent);
  exponent.what = "the same exponent against 1, the rate of mild scores";
  exponent.expected = 1;
  out.controls = {exponent};
  return out;
}

Verdict judge_finite(const FiniteNumbers& n) {
  if (n.at.size() < 2) return verdict_of({}, VerdictStatus::holds, {});
  return verdict_of(
      finite_checks(n), VerdictStatus::holds,
      "The layer that is best on the infinite prompt loses to an affine map of the query up to " +
          brief(n.crossing) + " tokens. Its excess falls with the exponent " +
          brief(last_exponent(n).value) + " at the longest prompts, where Laplace's method says " +
          brief(laplace_exponent(last_middle(n), kMean / std::sqrt(kVariance))) +
          "; the limit of that is 0.618." +
          (n.cool.empty() ? ""
                          : " At L = " + brief(static_cast<double>(n.cool.front().L)) +
                                " the best layer near it has scores " +
                                brief(n.cool.front().factor) + " times as large."));
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string x = id("x"), l = id("ℓ"), mu = id("μ"), two = num("2");
  const std::string freeze = frac(l, x) + op("−") + frac(x, two);
  return {
      math(id("γ") + paren(l) + op("=") + frac(num("1"), x) + paren(freeze) + text("at the") + x +
           text("with the least") + frac(sup(paren(x + op("−") + mu), two), two) + op("+") +
           frac(sup(paren(freeze), two), two)),
      math(id("γ") + paren(id("∞")) + op("=") + frac(root(num("5")) + op("−") + num("1"), two))};
}

SectionReport report(const Options&, std::span<const FiniteRow> rows) {
  const FiniteNumbers n = numbers_of(rows);
  Sheet curve{.columns = {"layer", "L", "excess"}, .rows = {}};
  PageTable cool{.title = "The best cool layer",
                 .sheet = {.columns = {"L", "factor on U", "excess"}, .rows = {}}};
  double affine = 0;
  for (const FiniteRow& row : rows) {
    if (row.kind == FiniteKind::limit_layer) curve.add("best at L = ∞", row.L, row.excess);
    if (row.kind == FiniteKind::affine) affine = row.excess.value();
  }
  for (const CoolPoint& at : n.cool) {
    curve.add("best cool layer", at.L, at.excess);
    cool.sheet.add(at.L, at.factor, at.excess);
  }
  Section section;
  section.statement =
      "This statement is ours. At finite length the layer that is the posterior mean of the "
      "infinite "
      "prompt is far from the best: rare queries see a frozen softmax, so its excess risk falls "
      "with "
      "an exponent that tends to (√5 − 1)/2 = 0.618, an affine map of the query beats it on short "
      "prompts, and on long ones a layer with smaller scores is better.";
  section.verdict = judge_finite(n);
  section.text =
      "Risks at finite length average over all prompts without drawing a token. They are compared "
      "with NumPy values that use none of this code. The exponent at a finite length is below its "
      "limit, because queries are not centred: Laplace's method predicts it at every length. For "
      "short prompts, below about a thousand tokens, the best layer of this family is another one, "
      "with larger scores; it is not judged here.";
  section.formulas = formulas();
  section.figures = {
      {.id = "excess",
       .chart = CurveChart{.data = "finite_excess",
                           .x = {.column = "L", .title = "prompt length L", .log = true},
                           .y = {.column = "excess", .title = "excess risk", .log = true},
                           .series = "layer",
                           .references = {{'y', affine, "best affine map"}}},
       .caption =
           "Risk above the least one, exact over prompts, γ = 1/2, ξ = 1, means ±2, dimension "
           "one.",
       .read = true}};
  section.tables = {judged_table(finite_checks(n)), std::move(cool)};
  return {.section = std::move(section),
          .datasets = {{"finite_excess", std::move(curve)}},
          .hypotheses = {{.text = "Two means ±2 of equal weight, γ = 1/2, ξ = 1.",
                          .values = {{"m", kMean}, {"gamma", kGamma}, {"xi", kXi}}}},
          .checks = finite_checks(n)};
}

}  // namespace

Statement denoising_finite_prompts() {
  return make_statement<FiniteRow>(
      "cooling", "Finite prompts: the limit's denoiser is not the best one", cells, report);
}

}  // namespace esscher::paper
