// Transfer from linear attention: the same quantities for linear attention, whose finite-L limit
// is known in closed form ([ZFB24] of docs/references.md), beside softmax.
#include <algorithm>
#include <cmath>

#include "esscher/paper/statements.h"
#include "esscher/paper/text.h"
#include "esscher/paper/training.h"
#include "esscher/report/vega_lite.h"
#include "esscher/risk/closed_form.h"

namespace esscher::paper {
namespace {

constexpr std::string_view kId = "transfer";

std::vector<std::int64_t> lengths(const Options& options) {
  if (options.size == Size::tiny) return {10, 100, 1000};
  return {10, 20, 50, 100, 200, 500, 1000, 10000, 100000};
}

std::vector<std::string> keys(const Options& options) {
  std::vector<std::string> out;
  for (const std::int64_t L : lengths(options)) {
    for (const char* model : {"linear", "softmax"}) {
      out.push_back("transfer/" + std::string(model) + "/L=" + std::to_string(L));
    }
  }
  return out;
}

std::vector<Row> compute(const Options& options, std::size_t cell) {
  const TwinSetup setup = twin_setup(options, regression(options), ParameterSpace::block);
  const std::int64_t L = lengths(options).at(cell / 2);
  const ModelKind kind = cell % 2 == 0 ? ModelKind::linear : ModelKind::softmax;
  std::vector<Row> rows = twin_rows(kId, "linear regression", setup, kind, L, 1, false);
  if (kind == ModelKind::linear) {
    Readout best = block_optimum(setup.task, L);
    best.r *= options.sign(kId);
    rows.push_back({{"section", kId},
                    {"kind", "closed"},
                    {"L", L},
                    {"risk", linear_risk(setup.task, best, L)}});
  }
  return rows;
}

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string gamma = sub(id("Γ"), id("L"));
  return {math(gamma + op("=") + paren(num("1") + op("+") + frac(num("1"), id("L"))) + id("Σ") +
               op("+") + frac(id("tr") + id("Σ"), id("L")) + id("I") + text(",   ") + id("b") +
               id("A") + op("→") + sup(gamma, op("−") + num("1")))};
}

SectionReport report(const Options& options, const std::vector<Row>& rows) {
  struct Point {
    double linear = 0, softmax = 0, softmax_error = 0, closed = 0, limit_error = 0,
           softmax_limit = 0;
  };
  std::map<std::int64_t, Point> by;
  for (const Row& row : rows) {
    Point& p = by[row["L"]];
    if (row["kind"] == "closed") {
      p.closed = row["risk"];
    } else if (row["model"] == "linear") {
      p.linear = row["risk"], p.limit_error = row["limit_error"];
    } else {
      p.softmax = row["risk"], p.softmax_error = row["std_error"],
      p.softmax_limit = row["limit_error"];
    }
  }
  Json curves = Json::array(), closed = Json::array(), gaps = Json::array(), table = Json::array();
  double worst_limit = 0, worst_risk = 0;
  std::int64_t worst_L = 0;
  std::vector<double> x, gap;
  for (const auto& [L, p] : by) {
    curves.push_back({{"model", "linear"}, {"L", L}, {"risk", p.linear}});
    curves.push_back({{"model", "softmax"}, {"L", L}, {"risk", p.softmax}});
    closed.push_back({{"model", "linear"}, {"L", L}, {"risk", p.closed}});
    x.push_back(static_cast<double>(L));
    gap.push_back(std::abs(p.softmax - p.linear));
    gaps.push_back({{"L", L}, {"gap", gap.back()}});
    worst_limit = std::max(worst_limit, p.limit_error);
    const double off = std::abs(p.linear - p.closed) / p.closed;
    if (off > worst_risk) worst_risk = off, worst_L = L;
    table.push_back({L, p.linear, p.closed, p.limit_error, p.softmax, p.softmax_error,
                     p.softmax / p.linear, p.softmax_limit});
  }
  std::string trouble;
  if (worst_limit > 1e-5 || worst_risk > 1e-6) {
    trouble = "linear attention at L = " + show(worst_L) + " ends " + show(worst_risk) +
              " (relative) from the closed-form risk, parameters " + show(worst_limit) + " from it";
  } else if (!(gap.back() < gap.front() / 10)) {
    trouble = "the risks of softmax and linear attention do not approach each other: gap " +
              show(gap.front()) + " at the shortest prompt, " + show(gap.back()) +
              " at the longest";
  }
  const auto& [longest, at_end] = *by.rbegin();
  const std::string good =
      "Trained linear attention ends at its closed form to " + show(worst_limit) +
      "; the risks of trained softmax and linear attention differ by " + show(gap.front()) +
      " at L = " + show(by.begin()->first) + " and by " + show(gap.back()) +
      " at L = " + show(longest) + " (exponent " + show(falling_exponent(x, gap)) +
      "), with ratio " + show(at_end.softmax / at_end.linear) + " there.";
  const LinearRegressionTask task = regression(options);
  Json section = {
      {"statement",
       "What is known for linear attention transfers to softmax attention with long prompts. "
       "Linear attention trained at length L ends at a known point, Γ_L⁻¹ (Zhang, Frei and "
       "Bartlett); softmax attention has no such formula at finite L but shares the limit L → ∞."},
      {"hypotheses",
       {"the task and start of Theorem 5.1, dimension " + std::to_string(task.dim) +
            ", α = " + show(start_alpha(task)),
        "linear attention divides by L: T = V (1/L Σ z z⊤) U z"}},
      {"verdict", verdict("holds", good, trouble)},
      {"text",
       "Both are trained by the same gradient flow from the same start. At short prompts they "
       "differ in both directions: softmax pays e^{τ²} for its weights, linear attention pays for "
       "reading the sample covariance twice."},
      {"formulas", formulas()},
      {"figures",
       {{{"id", "risk"},
         {"caption",
          "Risk at the end of training against prompt length for linear and softmax attention. "
          "Dashed: the closed form of linear attention."},
         {"spec", curve_chart({.data = "transfer_risk",
                               .x = {.column = "L", .title = "prompt length L", .log = true},
                               .y = {.column = "risk", .title = "limiting risk", .log = true},
                               .series = "model",
                               .reference_data = "transfer_closed"})}},
        {{"id", "gap"},
         {"caption",
          "The difference of the two risks: what transferring a result from linear attention "
          "costs."},
         {"spec", curve_chart({.data = "transfer_gap",
                               .x = {.column = "L", .title = "prompt length L", .log = true},
                               .y = {.column = "gap", .title = "|softmax − linear|", .log = true},
                               .height = 240})}}}},
      {"tables",
       {{{"title", "End of training"},
         {"columns",
          {"L", "linear", "closed form", "|bA − Γ_L⁻¹|, relative", "softmax", "standard error",
           "softmax / linear", "softmax |bA − Σ⁻¹|, relative"}},
         {"rows", table}}}}};
  return {section,
          {{"transfer_risk", curves}, {"transfer_closed", closed}, {"transfer_gap", gaps}}};
}

}  // namespace

Section transfer() {
  return {kId, "Transfer: what linear attention learns, softmax attention learns", keys, compute,
          report};
}

}  // namespace esscher::paper
