// Softmax attention on a mixture of Gaussians is a sum of affine experts with softmax gates.
//
// The left side does not use the closed form: every component is replaced by weighted tokens on a
// grid (test_laws.h), and ordinary softmax attention reads the union of these prompts.
#include <cmath>

#include "esscher/attention/attention.h"
#include "esscher/base/number_text.h"
#include "esscher/measure/gaussian.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/mixture_statements.h"
#include "esscher/paper/test_laws.h"

namespace esscher::paper {
namespace {

constexpr double kExpertError = 1e-11;

// ---- rows and cells

enum class ExpertKind { random, curve };

constexpr auto enum_names(ExpertKind) {
  return EnumNames<ExpertKind, 2>{"kind of row",
                                  {{{ExpertKind::random, "random"}, {ExpertKind::curve, "curve"}}}};
}

struct ExpertRow {
  ExpertKind kind = ExpertKind::random;
  std::optional<Index> index = {}, d = {}, components = {};
  std::optional<double> relative_error = {}, gaussian_ratio = {};
  std::optional<std::string> tokens = {};
  std::optional<double> z = {}, output = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("kind", row.kind, "", "what the row holds");
    column("case", row.index, "", "number of the random law");
    column("d", row.d, "", "dimension of tokens");
    column("components", row.components, "", "number of Gaussians in the mixture");
    column("relative_error", row.relative_error, "", "softmax against the closed form");
    column("gaussian_ratio", row.gaussian_ratio, "", "output of the Gaussian of the same moments");
    column("tokens", row.tokens, "", "law of the tokens");
    column("z", row.z, "", "query");
    column("output", row.output, "", "T[mu](z)");
  }
};

// A mixture by its parts: weights [K], means [K,d], roots F_k with covariance F_k F_k'.
struct Parts {
  Vector weights;
  Matrix means;
  std::vector<Matrix> roots;
};

// sum_k r_k (m_k + S_k a), r_k ~ p_k e^{a'm_k + a'S_k a/2}: the statement, written out.
Vector experts(const Parts& mu, const Vector& a) {
  const Index K = mu.weights.size();
  Vector log_gates(K);
  Matrix outputs(K, a.size());
  for (Index k = 0; k < K; ++k) {
    const Matrix& F = mu.roots[static_cast<std::size_t>(k)];
    const Vector m = mu.means.row(k).transpose(), Fa = F.transpose() * a;
    log_gates(k) = std::log(mu.weights(k)) + a.dot(m) + Fa.squaredNorm() / 2;
    outputs.row(k) = (m + F * Fa).transpose();
  }
  const Vector gates = (log_gates.array() - log_gates.maxCoeff()).exp();
  return outputs.transpose() * gates / gates.sum();
}

Empirical as_prompt(const Parts& mu, const Vector& a) {
  Matrix tokens(0, a.size());
  Vector weights;
  for (Index k = 0; k < mu.weights.size(); ++k) {
    const Matrix& F = mu.roots[static_cast<std::size_t>(k)];
    const double reach = (F.transpose() * a).norm() + kGridBeyond;
    const Empirical part = grid_prompt(mu.means.row(k).transpose(), F, reach);
    Matrix longer(tokens.rows() + part.size(), a.size());
    longer << tokens, part.tokens();
    Vector heavier(longer.rows());
    heavier << weights, mu.weights(k) * part.weights();
    tokens = std::move(longer);
    weights = std::move(heavier);
  }
  return {std::move(tokens), weights};
}

Gaussian same_moments(const Parts& mu) {
  const Vector mean = mu.means.transpose() * mu.weights;
  Matrix cov = Matrix::Zero(mean.size(), mean.size());
  for (Index k = 0; k < mu.weights.size(); ++k) {
    const Matrix& F = mu.roots[static_cast<std::size_t>(k)];
    const Vector off = mu.means.row(k).transpose() - mean;
    cov += mu.weights(k) * (F * F.transpose() + off * off.transpose());
  }
  return {mean, cov};
}

ExpertRow random_case(const Options& options, Index i) {
  const Stream s = Stream(options.seed).split(41).split(static_cast<std::uint64_t>(i));
  const Index d = 1 + i % 2, K = 2 + i % 3;
  const double unit = 1 / std::sqrt(static_cast<double>(d));
  Parts mu{
      random_matrix(s.split(1), K, 1, 1).array().exp(), random_matrix(s.split(2), K, d, 1.5), {}};
  mu.weights /= mu.weights.sum();
  for (Index k = 0; k < K; ++k) {
    mu.roots.push_back(random_matrix(s.split(3).split(static_cast<std::uint64_t>(k)), d, d, unit));
  }
  const Attention attention = Attention::from_uv(random_matrix(s.split(4), d, d, unit),
                                                 random_matrix(s.split(5), 2, d, unit));
  const Vector z = random_matrix(s.split(6), d, 1, 1), a = attention.tilt(z);
  const Vector formula = attention.V() * experts(mu, a);
  const Vector softmax = attention(as_prompt(mu, a), z);
  return {.kind = ExpertKind::random,
          .index = i,
          .d = d,
          .components = K,
          .relative_error = (softmax - formula).norm() / formula.norm(),
          .gaussian_ratio = attention(same_moments(mu), z).norm() / formula.norm()};
}

constexpr const char* kMixtureTokens = "two clusters at ±2";
constexpr const char* kGaussianTokens = "the Gaussian of the same variance";

std::vector<ExpertRow> curves() {
  const Parts mu{Vector::Constant(2, 0.5),
                 (Matrix(2, 1) << 2, -2).finished(),
                 {Matrix::Constant(1, 1, 0.5), Matrix::Constant(1, 1, 0.5)}};
  const double variance = same_moments(mu).second_moment()(0, 0);
  std::vector<ExpertRow> rows;
  for (int i = -60; i <= 60; ++i) {
    const double z = i / 20.0;
    const auto add = [&](const char* tokens, double output) {
      rows.push_back({.kind = ExpertKind::curve, .tokens = tokens, .z = z, .output = output});
    };
    add(kMixtureTokens, experts(mu, Vector::Constant(1, z))(0));
    if (std::abs(z) <= 1) add(kGaussianTokens, variance * z);
  }
  return rows;
}

Cells<ExpertRow> cells(const Options& options) {
  CellList<ExpertRow> list;
  list.add("gated-experts/random", [options] {
    std::vector<ExpertRow> rows;
    const Index cases = options.pick<Index>(6, 60, 200);
    for (Index i = 0; i < cases; ++i) rows.push_back(random_case(options, i));
    return rows;
  });
  list.add("gated-experts/curve", curves);
  return std::move(list).cells();
}

// ---- numbers

ExpertNumbers numbers_of(std::span<const ExpertRow> rows) {
  ExpertNumbers n;
  for (const ExpertRow& row : rows) {
    if (row.kind != ExpertKind::random) continue;
    ++n.cases;
    const double error = row.relative_error.value(), other = row.gaussian_ratio.value();
    if (is_worse(error, n.worst_ratio - 1)) n.worst_ratio = 1 + error;
    if (is_worse(std::abs(other - 1), std::abs(n.gaussian_ratio - 1))) n.gaussian_ratio = other;
  }
  return n;
}

}  // namespace

// ---- verdict

Checks expert_checks(const ExpertNumbers& n) {
  if (n.cases < 1) return {};
  const Judged ratio{.what = "the output of softmax over the sum of experts",
                     .value = n.worst_ratio,
                     .expected = 1,
                     .tolerance = kExpertError};
  Judged gaussian = ratio;
  gaussian.what = "the output of the Gaussian of the same moments over the sum of experts";
  gaussian.value = n.gaussian_ratio;
  return {.figures = {ratio}, .controls = {gaussian}};
}

Verdict judge_experts(const ExpertNumbers& n) {
  return verdict_of(expert_checks(n), VerdictStatus::holds,
                    "Over " + std::to_string(n.cases) +
                        " mixtures softmax attention is the sum of gated affine experts to " +
                        brief(std::abs(n.worst_ratio - 1)) + " (relative).");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string k = id("k"), a = id("a"), T = op("⊤");
  const std::string rk = sub(id("r"), k), mk = sub(id("m"), k), Sk = sub(id("S"), k);
  return {math(operator_on(id("μ")) + paren(id("z")) + op("=") + id("V") + sub(op("∑"), k) + rk +
               paren(mk + op("+") + Sk + a) + and_also() + a + op("=") + id("U") + id("z")),
          math(rk + op("∝") + sub(id("π"), k) +
               sup(id("e"), sup(a, T) + mk + op("+") + sup(a, T) + Sk + a + op("/") + num("2")))};
}

SectionReport report(const Options&, std::span<const ExpertRow> rows) {
  const ExpertNumbers n = numbers_of(rows);
  Sheet curve{.columns = {"tokens", "z", "output"}, .rows = {}};
  for (const ExpertRow& row : rows) {
    if (row.kind == ExpertKind::curve) curve.add(row.tokens, row.z, row.output);
  }
  Section section;
  section.statement =
      "If the tokens are a mixture of Gaussians, softmax attention over the infinite prompt is a "
      "sum "
      "of affine maps of the query, one for each component, weighted by gates that are a softmax "
      "of "
      "quadratic functions of the query.";
  section.verdict = judge_experts(n);
  section.text =
      "The left side does not use the formula. Each component is replaced by weighted tokens on a "
      "grid, on which ordinary softmax attention is the integral to rounding error. The control "
      "reads the Gaussian with the mean and the covariance of the mixture: attention does not "
      "depend on the first two moments alone.";
  section.formulas = formulas();
  section.figures = {
      {.id = "curves",
       .chart = CurveChart{.data = "expert_curves",
                           .x = {.column = "z", .title = "query z"},
                           .y = {.column = "output", .title = "T[μ](z)"},
                           .series = "tokens",
                           .series_title = "tokens",
                           .points = false},
       .caption =
           "T[μ](z) in dimension one with U = V = 1. Between the clusters the gate turns from "
           "one expert to the other; outside, one expert alone is affine.",
       .read = true}};
  section.tables = {judged_table(expert_checks(n))};
  return {
      .section = std::move(section),
      .datasets = {{"expert_curves", std::move(curve)}},
      .hypotheses = {{.text = "Tokens are mixtures by construction: " + std::to_string(n.cases) +
                              " random ones of two to four Gaussians in dimension one and two.",
                      .values = {{"laws", static_cast<double>(n.cases)}}}},
      .checks = expert_checks(n)};
}

}  // namespace

Statement gated_experts() {
  return make_statement<ExpertRow>(
      "gated-experts", "A head on a mixture is a sum of gated affine experts", cells, report);
}

}  // namespace esscher::paper
