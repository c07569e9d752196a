// Almost-sure convergence: one prompt, growing, for five laws of tokens. Tokens are drawn in
// blocks and merged into one tilted sum (tilt/state.h), so memory does not grow with the prompt.
#include <algorithm>
#include <cmath>

#include "esscher/attention/attention.h"
#include "esscher/base/length_grid.h"
#include "esscher/base/number_text.h"
#include "esscher/concentration/constant.h"
#include "esscher/estimate/moments.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/any_measure.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/empirical.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/sphere.h"
#include "esscher/paper/mathml.h"
#include "esscher/paper/statements.h"
#include "esscher/paper/verdicts.h"
#include "esscher/tilt/tilt.h"

namespace esscher::paper {
namespace {

// ---- setting

constexpr Index kBlock = 1 << 17;  // tokens that are drawn at a time

struct Law {
  std::string name;
  AnyMeasure mu;
};

// Unit covariance in the plane, except the mixture, which is neither centred nor symmetric.
std::vector<Law> laws() {
  const Matrix I = Matrix::Identity(2, 2);
  const Vector centre = Vector::Zero(2);
  const Vector left{{-1.0, 0.5}}, right{{2.0, -1.0}};
  return {{"Gaussian", Gaussian(I)},
          {"Rademacher", Rademacher(2)},
          {"uniform", Affine(centre, std::sqrt(3.0) * I, Uniform(2))},
          {"sphere", Sphere(2, std::sqrt(2.0))},
          {"Gaussian mixture",
           Mixture(Vector{{2.0, 1.0}}, {Gaussian(left, 0.5 * I), Gaussian(right, 0.25 * I)})}};
}

const Attention& attention() {
  static const Attention layer =
      Attention::from_uv(Matrix{{0.8, -0.3}, {0.2, 0.6}}, Matrix{{1.0, 0.5}, {-0.5, 1.0}});
  return layer;
}
const Vector kQuery{{1.0, -0.8}};

std::vector<std::int64_t> lengths(const Options& options) {
  return length_grid(10, options.pick<std::int64_t>(10000, 10000000, 10000000), 4);
}

// Blocks of tokens that are prompts of their own, for the mean square of their errors.
struct BlockPlan {
  Index blocks, tokens;
};
BlockPlan block_plan(const Options& options) {
  return options.pick<BlockPlan>({2500, 2000}, {4000, 2000}, {10000, 2000});
}

int prompts(const Options& options) { return options.pick(2, 5, 8); }

// ---- rows and cells

struct GrowingRow {
  std::string tokens;
  std::string prompt;
  Length L = 1;
  double error = 0;
  double clt = 0;
  std::optional<double> ratio = {}, ratio_error = {};
  std::optional<double> false_ratio = {}, false_error = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("tokens", row.tokens, "", "law of the tokens");
    column("prompt", row.prompt, "", "number of the prompt");
    column("L", row.L, "tokens", "length of the prompt");
    column("error", row.error, "", "distance of the output to its limit");
    column("clt", row.clt, "", "deviation that the central limit theorem predicts");
    column("ratio", row.ratio, "", "mean square of errors over its limit");
    column("ratio_error", row.ratio_error, "", "standard error of the ratio");
    column("false_ratio", row.false_ratio, "", "the ratio with the limit of another law");
    column("false_error", row.false_error, "", "standard error of the false ratio");
  }
};

constexpr const char* kBlockRow = "blocks";

std::vector<GrowingRow> grow(const Law& law, int prompt, const std::vector<std::int64_t>& at,
                             const Stream& stream) {
  const Vector a = attention().tilt(kQuery);
  const Vector limit = attention()(law.mu, kQuery);
  const double constant = asymptotic_constant(Metric::output, law.mu, attention(), kQuery);
  TiltState state = TiltState::neutral(2);
  std::uint64_t block = 0;
  std::vector<GrowingRow> rows;
  for (const std::int64_t L : at) {
    while (state.count < L) {
      const Index n = std::min<Index>(kBlock, L - state.count);
      const Empirical part = law.mu.sample(stream.split(block++), n);
      const Rows<double> tokens(part.tokens().data(), n, 2);
      merge(state, tilt<double>({a.data(), 2}, tokens, tokens));
    }
    rows.push_back({.tokens = law.name,
                    .prompt = std::to_string(prompt),
                    .L = L,
                    .error = (attention().V() * state.mean() - limit).norm(),
                    .clt = std::sqrt(constant / static_cast<double>(L))});
  }
  return rows;
}

// L E|error|^2 / constant over independent blocks, 1 up to O(1/L); and the same with the limit of a
// law that has the same mean and covariance, or nearly.
std::vector<GrowingRow> blocks(const BlockPlan& plan, const Law& law, const Law& other,
                               const Stream& stream) {
  const Vector a = attention().tilt(kQuery);
  const Vector limit = attention()(law.mu, kQuery), wrong = attention()(other.mu, kQuery);
  const double constant = asymptotic_constant(Metric::output, law.mu, attention(), kQuery);
  const double scale = static_cast<double>(plan.tokens) / constant;
  Moments right, false_one;
  for (Index block = 0; block < plan.blocks; ++block) {
    const Empirical part =
        law.mu.sample(stream.split(static_cast<std::uint64_t>(block)), plan.tokens);
    const Rows<double> tokens(part.tokens().data(), plan.tokens, 2);
    const Vector output = attention().V() * tilt<double>({a.data(), 2}, tokens, tokens).mean();
    right.add(scale * (output - limit).squaredNorm());
    false_one.add(scale * (output - wrong).squaredNorm());
  }
  return {{.tokens = law.name,
           .prompt = kBlockRow,
           .L = Length(plan.tokens),
           .error = std::sqrt(right.mean() / scale),
           .clt = std::sqrt(1 / scale),
           .ratio = right.mean(),
           .ratio_error = right.std_error(),
           .false_ratio = false_one.mean(),
           .false_error = false_one.std_error()}};
}

Cells<GrowingRow> cells(const Options& options) {
  CellList<GrowingRow> list;
  std::uint64_t cell = 0;
  for (const Law& law : laws()) {
    for (int prompt = 1; prompt <= prompts(options); ++prompt, ++cell) {
      list.add("almost-sure/" + law.name + "/prompt " + std::to_string(prompt),
               [law, prompt, at = lengths(options),
                stream = Stream(options.seed).split(22).split(cell)] {
                 return grow(law, prompt, at, stream);
               });
    }
  }
  const std::vector<Law> all = laws();
  for (std::size_t i = 0; i < all.size(); ++i, ++cell) {
    list.add("almost-sure/" + all[i].name + "/blocks",
             [plan = block_plan(options), law = all[i], other = all[i == 0 ? 1 : 0],
              stream = Stream(options.seed).split(22).split(cell)] {
               return blocks(plan, law, other, stream);
             });
  }
  return std::move(list).cells();
}

// ---- numbers

GrowingPrompts numbers_of(const std::string& tokens, std::span<const GrowingRow> rows,
                          std::int64_t end) {
  GrowingPrompts out{.tokens = tokens};
  for (const GrowingRow& row : rows) {
    if (row.tokens != tokens) continue;
    if (row.prompt == kBlockRow) {
      out.block_ratio = row.ratio.value();
      out.block_error = row.ratio_error.value();
      out.false_ratio = row.false_ratio.value();
      out.false_error = row.false_error.value();
      continue;
    }
    const std::int64_t L = row.L.count();
    const double deviations = row.error / row.clt;
    if (L >= kGrowingFrom && is_worse(deviations, out.worst)) {
      out.worst = deviations;
      out.worst_L = L;
    }
    if (L == end) out.last = worse(out.last, row.error), out.clt = row.clt;
  }
  return out;
}

}  // namespace

// ---- verdict

Checks almost_sure_checks(std::span<const GrowingPrompts> laws) {
  Checks out;
  for (const GrowingPrompts& law : laws) {
    const Judged ratio{.what = "the mean square error of " + law.tokens + " blocks over its limit",
                       .value = law.block_ratio,
                       .error = law.block_error,
                       .expected = 1,
                       .source = Source::closed_form,
                       .tolerance = kBlockTolerance};
    out.figures.push_back(ratio);
    Judged control = ratio;
    control.what = "the same for " + law.tokens + " with the limit of another law";
    control.value = law.false_ratio;
    control.error = law.false_error;
    out.controls.push_back(std::move(control));
    out.conditions.push_back({.what = "for " + law.tokens + " tokens at L = " + brief(law.worst_L) +
                                      " the error is " + brief(law.worst) +
                                      " deviations of the central limit theorem, " +
                                      brief(kGrowingDeviations) + " are allowed",
                              .holds = law.worst <= kGrowingDeviations});
  }
  return out;
}

Verdict judge_almost_sure(std::span<const GrowingPrompts> laws, int prompts, std::int64_t end) {
  double worst = 0, last = 0;
  for (const GrowingPrompts& law : laws) {
    worst = worse(worst, law.worst);
    last = worse(last, law.last);
  }
  return verdict_of(
      almost_sure_checks(laws), VerdictStatus::holds,
      "Every one of the " + std::to_string(prompts) + " × " + std::to_string(laws.size()) +
          " growing prompts comes close to its limit: at L = " + brief(end) +
          " the largest error is " + brief(last) + ", and from L = " + brief(kGrowingFrom) +
          " on no prompt is further than " + brief(worst) +
          " central-limit deviations from it (allowed " + brief(kGrowingDeviations) +
          "). The mean square error of blocks has the size that the central limit theorem gives.");
}

// ---- page

namespace {

std::vector<std::string> formulas() {
  using namespace mathml;
  return {math(operator_on(empirical_law()) + paren(id("z")) + op("→") + operator_on(id("μ")) +
               paren(id("z")) + text("almost surely") + as_L_grows())};
}

std::vector<StatedHypothesis> hypotheses(const Options& options) {
  StatedHypothesis integrable{.text = "The function e^{⟨a,z′⟩} is integrable at a = Uz:"};
  std::string sep = " ";
  for (const Law& law : laws()) {
    const double value = law.mu.log_mgf(attention().tilt(kQuery));
    integrable.text += sep + "Λ(a) = " + brief(value) + " for " + law.name + " tokens";
    integrable.values.emplace_back("Lambda(a), " + law.name, value);
    integrable.holds = *integrable.holds && std::isfinite(value);
    sep = ", ";
  }
  integrable.text += ".";
  return {{.text = "Tokens are independent with one law: prompts are streams of tokens, and a "
                   "shorter prompt is the beginning of a longer one.",
           .values = {{"prompts of each law", prompts(options)},
                      {"longest L", static_cast<double>(lengths(options).back())}}},
          integrable};
}

// The prompts of each law, and the deviation that is predicted for them.
std::map<std::string, Sheet> curves(std::span<const GrowingRow> rows) {
  Sheet prompts{.columns = {"tokens", "prompt", "L", "error"}, .rows = {}};
  Sheet predicted{.columns = {"tokens", "prompt", "L", "error"}, .rows = {}};
  for (const GrowingRow& row : rows) {
    if (row.prompt == kBlockRow) continue;
    prompts.add(row.tokens, row.prompt, row.L.count(), row.error);
    if (row.prompt == "1") predicted.add(row.tokens, "predicted", row.L.count(), row.clt);
  }
  return {{"almost_sure", std::move(prompts)}, {"almost_sure_predicted", std::move(predicted)}};
}

std::vector<Figure> figures() {
  return {
      {.id = "paths",
       .chart = CurveChart{.data = "almost_sure",
                           .x = {.column = "L", .title = "prompt length L", .log = true},
                           .y = {.column = "error", .title = "distance to the limit", .log = true},
                           .series = "prompt",
                           .quiet = true,
                           .reference_data = "almost_sure_predicted",
                           .reference_title = "predicted by the central limit theorem",
                           .facet = "tokens",
                           .points = false},
       .caption = "Distance to the limit along growing prompts: each grey line is one prompt "
                  "that keeps growing, for each law of tokens on the same axes.",
       .read = true}};
}

SectionReport report(const Options& options, std::span<const GrowingRow> rows) {
  const std::int64_t end = lengths(options).back();
  std::vector<GrowingPrompts> numbers;
  PageTable table{.title = "At the end of the longest prompt, L = " + brief(end),
                  .sheet = {.columns = {"tokens", "sub-Gaussian σ", "largest error",
                                        "predicted deviation", "worst error / deviation, L ≥ 1000"},
                            .rows = {}}};
  for (const Law& law : laws()) {
    const GrowingPrompts n = numbers_of(law.name, rows, end);
    table.sheet.add(n.tokens, law.mu.sub_gaussian(), n.last, n.clt, n.worst);
    numbers.push_back(n);
  }
  Section section;
  section.statement =
      "For a fixed query, attention over a prompt of independent tokens converges almost surely "
      "to attention over their law: for almost every infinite prompt, reading more of that same "
      "prompt brings the output to the limit. This is what makes an infinite prompt meaningful.";
  section.verdict = judge_almost_sure(numbers, prompts(options), end);
  section.text =
      "Each grey curve is a single prompt that keeps growing, not an average. No finite prompt "
      "shows a "
      "limit; "
      "what is judged is that no curve leaves six deviations of the central limit theorem, and "
      "that the mean square error of thousands of independent blocks of tokens is constant/L, "
      "whose "
      "constant is e^{Λ(2a)−2Λ(a)} (tr V C₂ₐ Vᵀ + ‖V(m₂ₐ−mₐ)‖²).";
  section.formulas = formulas();
  section.figures = figures();
  section.tables = {judged_table(almost_sure_checks(numbers)), std::move(table)};
  return {.section = std::move(section),
          .datasets = curves(rows),
          .hypotheses = hypotheses(options),
          .checks = almost_sure_checks(numbers)};
}

}  // namespace

Statement almost_sure() {
  return make_statement<GrowingRow>("almost-sure", "Almost-sure convergence: one prompt, growing",
                                    cells, report);
}

}  // namespace esscher::paper
