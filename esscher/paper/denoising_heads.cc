// How many heads the best denoiser of two clusters needs at L = infinity: one with a residual, two
// without, one without if and only if gamma = xi. No linear map is enough.
#include <boost/math/tools/minima.hpp>
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/mixture_statements.h"
#include "esscher/paper/shared_denoising.h"
#include "esscher/paper/test_laws.h"
#include "esscher/risk/layer_error.h"
#include "esscher/risk/layer_risk.h"

namespace esscher::paper {
namespace {

constexpr double kHeadError = 1e-10;
constexpr double kDrawn = 1e-10;                    // excesses below are rounding errors of zero
constexpr double kMean = 2, kGamma = 0.5, kXi = 1;  // tests/paper/mixtures.py has the same

// ---- rows and cells

enum class HeadsKind { residual, two_heads, swapped, excess, curve };

constexpr auto enum_names(HeadsKind) {
  return EnumNames<HeadsKind, 5>{"kind of row",
                                 {{{HeadsKind::residual, "residual"},
                                   {HeadsKind::two_heads, "two_heads"},
                                   {HeadsKind::swapped, "swapped"},
                                   {HeadsKind::excess, "excess"},
                                   {HeadsKind::curve, "curve"}}}};
}

struct HeadsRow {
  HeadsKind kind = HeadsKind::residual;
  std::optional<Index> index = {};
  std::optional<double> output_ratio = {};
  std::optional<double> gamma_over_xi = {}, bayes = {}, bayes_error = {}, one_head = {},
                        affine = {};
  std::optional<std::string> predictor = {};
  std::optional<double> z = {}, output = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("kind", row.kind, "", "what the row holds");
    column("case", row.index, "", "number of the random law");
    column("output_ratio", row.output_ratio, "", "layer over posterior mean, furthest from 1");
    column("gamma_over_xi", row.gamma_over_xi, "", "spread of clean points over that of the noise");
    column("bayes", row.bayes, "", "least risk");
    column("bayes_error", row.bayes_error, "", "its quadrature error");
    column("one_head", row.one_head, "", "least excess risk of one head without a residual");
    column("affine", row.affine, "", "excess risk of the best affine map");
    column("predictor", row.predictor, "", "what predicts the clean point");
    column("z", row.z, "", "query");
    column("prediction", row.output, "", "of the clean point");
  }
};

// Two heads without a residual, for means along the first of d >= 2 axes. The second head reads the
// query's first coordinate through the second axis, where both clusters look the same, so that its
// gates do not move and it is linear.
Layer two_heads(Index d, double gamma, double xi) {
  const double S = gamma * gamma + xi * xi;
  Matrix V1 = gamma * gamma / S * Matrix::Identity(d, d);
  V1(0, 0) = xi * xi / S;
  Matrix U2 = Matrix::Zero(d, d), V2 = Matrix::Zero(d, d);
  U2(1, 0) = 1 / S;
  V2(0, 1) = (gamma * gamma - xi * xi) / S;
  return {.W = Matrix::Zero(d, d),
          .heads = {{.U = Matrix::Identity(d, d) / S, .V = V1}, {.U = U2, .V = V2}}};
}

struct RandomTask {
  DenoisingTask task;
  Vector z;
};

// K means of one norm in R^d, or two opposite ones along the first axis.
RandomTask random_task(const Options& options, Index i, bool opposite) {
  const Stream s = Stream(options.seed).split(43).split(static_cast<std::uint64_t>(i));
  const Index d = opposite ? 2 + i % 2 : 1 + i % 3, K = 2 + i % 3;
  const double gamma = std::exp(s.split(1).normal(0) / 2), xi = std::exp(s.split(1).normal(1) / 2);
  const Vector z = random_matrix(s.split(2), d, 1, 2);
  if (opposite) return {opposite_means(2 * Vector::Unit(d, 0), gamma, xi), z};
  DenoisingTask task;
  task.weights = Vector::Constant(K, 1.0 / static_cast<double>(K));
  task.gamma = gamma;
  task.xi = xi;
  task.means.fixed = random_matrix(s.split(3), K, d, 1);
  task.means.fixed = 2 * task.means.fixed.rowwise().normalized();
  return {task, z};
}

// The output of a layer on the task's infinite prompt over its posterior mean.
double against_posterior(const DenoisingTask& task, const Layer& layer, const Vector& z) {
  const double S = task.gamma * task.gamma + task.xi * task.xi;
  const Index d = z.size();
  const TokenLaw law(
      SharedMixture{task.weights, task.means.fixed, Matrix(S * Matrix::Identity(d, d))});
  return ratio_of(layer_output(layer, law.measure(), z),
                  denoising_posterior(task, task.means.fixed, z).mean);
}

std::vector<HeadsRow> random_rows(const Options& options, HeadsKind kind) {
  std::vector<HeadsRow> rows;
  const Index cases = options.pick<Index>(6, 60, 200);
  for (Index i = 0; i < cases; ++i) {
    const RandomTask drawn = random_task(options, i, kind == HeadsKind::two_heads);
    const DenoisingTask& task = drawn.task;
    const Index d = drawn.z.size();
    const Layer layer = kind == HeadsKind::two_heads ? two_heads(d, task.gamma, task.xi)
                        : kind == HeadsKind::swapped ? residual_layer(d, task.xi, task.gamma)
                                                     : residual_layer(d, task.gamma, task.xi);
    rows.push_back(
        {.kind = kind, .index = i, .output_ratio = against_posterior(task, layer, drawn.z)});
  }
  return rows;
}

// The best head without a residual in dimension one: v is least squares for each u.
struct BestHead {
  double u = 0, v = 0, excess = 0;
};

BestHead best_head(const DenoisingTask& task) {
  const ContextTask context = denoising_task(task);
  std::vector<WeightedNode> nodes = lattice_nodes(context, 0);
  const double S = task.gamma * task.gamma + task.xi * task.xi;
  const auto at = [&](double log_factor) {
    const double u = std::exp(log_factor) / S;
    double TT = 0, tT = 0, tt = 0;
    for (const WeightedNode& place : nodes) {
      const Vector a = u * place.node.query;
      const double T = place.node.tokens->measure().tilted_mean(a)(0), t = place.node.target(0);
      TT += place.weight * T * T;
      tT += place.weight * t * T;
      tt += place.weight * t * t;
    }
    return BestHead{u, tT / TT, 0.5 * (tt - tT * tT / TT)};
  };
  double best = -4;
  for (double x = -4; x <= 3; x += 0.1) {
    if (at(x).excess < at(best).excess) best = x;
  }
  const auto found = boost::math::tools::brent_find_minima([&](double x) { return at(x).excess; },
                                                           best - 0.2, best + 0.2, 40);
  return at(found.first);
}

// log2 of gamma/xi, dense where one head comes close.
const std::vector<double> kFewExponents = {-1, 0, 1};
const std::vector<double> kExponents = {-2,        -1.5,       -1, -0.5,      -0.25,    -1 / 16.0,
                                        -1 / 64.0, -1 / 512.0, 0,  1 / 512.0, 1 / 64.0, 1 / 16.0,
                                        0.25,      0.5,        1,  1.5,       2};

std::vector<HeadsRow> excess_rows(const Options& options) {
  std::vector<HeadsRow> rows;
  for (const double exponent : options.size == Size::tiny ? kFewExponents : kExponents) {
    const double ratio = std::exp2(exponent);
    const DenoisingTask task = opposite_means(Vector::Constant(1, kMean), ratio * kXi, kXi);
    const ReferenceRisks known =
        reference_risks(denoising_task(task), Length::infinity(), {.stream = Stream(options.seed)});
    rows.push_back({.kind = HeadsKind::excess,
                    .gamma_over_xi = ratio,
                    .bayes = known.bayes.value,
                    .bayes_error = known.bayes.std_error,
                    .one_head = best_head(task).excess,
                    .affine = known.affine.value - known.bayes.value});
  }
  return rows;
}

constexpr const char* kPosterior = "posterior mean, one head with residual";
constexpr const char* kOneHead = "best head without residual";
constexpr const char* kAffine = "best affine map";

std::vector<HeadsRow> curves() {
  const DenoisingTask task = opposite_means(Vector::Constant(1, kMean), kGamma, kXi);
  const BestHead head = best_head(task);
  const double S = kGamma * kGamma + kXi * kXi;
  const double slope = (kGamma * kGamma + kMean * kMean) / (S + kMean * kMean);
  std::vector<HeadsRow> rows;
  for (int i = -50; i <= 50; ++i) {
    const double z = i / 10.0;
    const auto add = [&](const char* predictor, double output) {
      rows.push_back({.kind = HeadsKind::curve, .predictor = predictor, .z = z, .output = output});
    };
    add(kPosterior, denoising_posterior(task, task.means.fixed, Vector::Constant(1, z)).mean(0));
    add(kOneHead, head.v * (kMean * std::tanh(head.u * z * kMean) + S * head.u * z));
    add(kAffine, slope * z);
  }
  return rows;
}

Cells<HeadsRow> cells(const Options& options) {
  CellList<HeadsRow> list;
  for (const HeadsKind kind : {HeadsKind::residual, HeadsKind::two_heads, HeadsKind::swapped}) {
    list.add("two-heads/" + std::string(name(kind)),
             [options, kind] { return random_rows(options, kind); });
  }
  list.add("two-heads/excess", [options] { return excess_rows(options); });
  list.add("two-heads/curves", curves);
  return std::move(list).cells();
}

// ---- numbers

DenoisingNumbers numbers_of(std::span<const HeadsRow> rows) {
  DenoisingNumbers n;
  const auto take = [](double& worst, double ratio) {
    if (is_worse(std::abs(ratio - 1), std::abs(worst - 1))) worst = ratio;
  };
  for (const HeadsRow& row : rows) {
    switch (row.kind) {
      case HeadsKind::residual:
        ++n.cases;
        take(n.residual_ratio, row.output_ratio.value());
        break;
      case HeadsKind::two_heads: take(n.two_heads_ratio, row.output_ratio.value()); break;
      case HeadsKind::swapped: take(n.swapped_ratio, row.output_ratio.value()); break;
      case HeadsKind::excess: {
        const double ratio = row.gamma_over_xi.value();
        n.heads.push_back({.ratio = ratio,
                           .excess = row.one_head.value(),
                           .affine = row.affine.value(),
                           .judged = has_independent("denoising one head", ratio, 0)});
        if (ratio != kGamma / kXi) break;
        n.bayes = row.bayes.value();
        n.bayes_error = row.bayes_error.value();
        n.affine = row.affine.value() + n.bayes;
        break;
      }
      case HeadsKind::curve: break;
    }
  }
  const double S = kGamma * kGamma + kXi * kXi, mm = kMean * kMean;
  n.affine_expected = 0.5 * (kGamma * kGamma + mm) * kXi * kXi / (S + mm);
  return n;
}

}  // namespace

// ---- verdict

Checks denoising_checks(const DenoisingNumbers& n) {
  if (n.cases < 1) return {};
  Checks out;
  const auto ratio = [](const char* what, double value) {
    return Judged{.what = what, .value = value, .expected = 1, .tolerance = kHeadError};
  };
  out.figures = {ratio("the layer with residual over the posterior mean", n.residual_ratio),
                 ratio("two heads over the posterior mean", n.two_heads_ratio),
                 against_independent("the least risk at γ/ξ = 1/2", n.bayes, n.bayes_error, 1e-6,
                                     independent("denoising bayes", 0, 0)),
                 {.what = "the risk of the best affine map at γ/ξ = 1/2",
                  .value = n.affine,
                  .expected = n.affine_expected,
                  .tolerance = 1e-6}};
  for (const OneHead& head : n.heads) {
    if (head.judged) {
      out.figures.push_back(against_independent(
          "the least excess of one head at γ/ξ = " + brief(head.ratio), head.excess, 0, 1e-3,
          independent("denoising one head", head.ratio, 0)));
    }
    if (head.ratio == 1) {
      out.conditions.push_back({"one head is not enough at γ = ξ", head.excess < 1e-12});
    } else {
      out.conditions.push_back(
          {"one head is enough at γ/ξ = " + brief(head.ratio), head.excess > 1e-9});
    }
    out.conditions.push_back(
        {"an affine map is enough at γ/ξ = " + brief(head.ratio), head.affine > 1e-6});
  }
  out.controls = {ratio("the layer of the task with γ and ξ exchanged", n.swapped_ratio)};
  return out;
}

Verdict judge_denoising(const DenoisingNumbers& n) {
  return verdict_of(denoising_checks(n), VerdictStatus::holds,
                    "Over " + std::to_string(n.cases) +
                        " tasks one head with a residual is the posterior mean to " +
                        brief(std::abs(n.residual_ratio - 1)) +
                        ", and so are two heads without one (" +
                        brief(std::abs(n.two_heads_ratio - 1)) +
                        "). The best single head without a residual loses nothing at γ = ξ and "
                        "something at every "
                        "other ratio; the best affine map always loses.");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string S = id("S"), x2 = sup(id("ξ"), num("2")), g2 = sup(id("γ"), num("2"));
  return {math(id("U") + op("=") + frac(num("1"), S) + id("I") + and_also() + id("V") + op("=") +
               frac(x2, S) + id("I") + and_also() + id("W") + op("=") + frac(g2 + op("−") + x2, S) +
               id("I") + and_also() + S + op("=") + g2 + op("+") + x2)};
}

std::vector<Figure> figures() {
  return {{.id = "excess",
           .chart = CurveChart{.data = "denoising_excess",
                               .x = {.column = "γ/ξ", .title = "γ/ξ", .log = true},
                               .y = {.column = "excess", .title = "excess risk", .log = true},
                               .series = "predictor",
                               .references = {{'x', 1, "γ = ξ"}}},
           .caption =
               "Least excess risk against the spread γ of clean points over the deviation ξ of the "
               "noise, means at ±2, dimension one. An excess of zero has no place on this axis.",
           .read = true},
          {.id = "curves",
           .chart = CurveChart{.data = "denoising_curves",
                               .x = {.column = "z", .title = "noisy point z"},
                               .y = {.column = "output", .title = "prediction of the clean point"},
                               .series = "predictor",
                               .points = false},
           .caption =
               "The prediction of the clean point against the noisy point z by three predictors, "
               "γ = 1/2, ξ = 1, means ±2.",
           .read = true}};
}

SectionReport report(const Options&, std::span<const HeadsRow> rows) {
  const DenoisingNumbers n = numbers_of(rows);
  Sheet excess{.columns = {"predictor", "γ/ξ", "excess"}, .rows = {}};
  Sheet curve{.columns = {"predictor", "z", "output"}, .rows = {}};
  for (const HeadsRow& row : rows) {
    // What is zero up to rounding is zero here, so that the curve breaks where the axis cannot show it.
    if (row.kind == HeadsKind::excess) {
      const double found = row.one_head.value();
      excess.add(kOneHead, row.gamma_over_xi, found > kDrawn ? found : 0.0);
    }
    if (row.kind == HeadsKind::curve) curve.add(row.predictor, row.z, row.output);
  }
  for (const HeadsRow& row : rows) {
    if (row.kind == HeadsKind::excess) excess.add(kAffine, row.gamma_over_xi, row.affine);
  }
  Section section;
  section.statement =
      "Clean points come from clusters of deviation γ around means of one norm, queries and tokens "
      "are clean points with noise of deviation ξ. On the infinite prompt one softmax head with a "
      "residual is the posterior mean. Without a residual two heads are enough; one head is enough "
      "if and only if γ = ξ; a linear map of the query is never enough.";
  section.verdict = judge_denoising(n);
  section.text =
      "Outputs of layers are those of attention on the law of the tokens; the posterior mean is "
      "Bayes' rule. The two heads of the test stand in dimension two and three: the second one "
      "reads "
      "along an axis on which both clusters look the same, so that its gates do not move. The best "
      "single head is found in dimension one, where it has two parameters.";
  section.formulas = formulas();
  section.figures = figures();
  section.tables = {judged_table(denoising_checks(n))};
  return {
      .section = std::move(section),
      .datasets = {{"denoising_excess", std::move(excess)}, {"denoising_curves", std::move(curve)}},
      .hypotheses = {{.text = "Means have one norm, 2, in dimension one to three.",
                      .values = {{"tasks", static_cast<double>(n.cases)}}}},
      .checks = denoising_checks(n)};
}

}  // namespace

Statement denoising_heads() {
  return make_statement<HeadsRow>("two-heads", "Denoising: how many heads are enough", cells,
                                  report);
}

}  // namespace esscher::paper
