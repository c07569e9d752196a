// Theorem 4.3: for a general in-context task the limiting risk at length L is at most that of the
// infinite prompt plus eps, for L >= L(eps). Checked where Theorem 5.1 does not apply: noisy labels
// with different prompt and query covariances, and features that are not Gaussian.
#include <algorithm>
#include <cmath>

#include "esscher/paper/statements.h"
#include "esscher/paper/text.h"
#include "esscher/paper/training.h"
#include "esscher/report/vega_lite.h"

namespace esscher::paper {
namespace {

constexpr std::string_view kId = "theorem-4.3";

struct General {
  std::string name;
  LinearRegressionTask task;
  std::vector<std::int64_t> lengths;
};

std::vector<General> settings(const Options& options) {
  const bool tiny = options.size == Size::tiny;
  LinearRegressionTask shifted = LinearRegressionTask::with_covariance(power_covariance(2, 0.5));
  shifted.query_cov = Vector{{2.0, 0.5}}.asDiagonal();
  shifted.noise_variance = 0.2;
  LinearRegressionTask coin = LinearRegressionTask::with_covariance(power_covariance(2, 0.5));
  coin.features = Features::rademacher;
  coin.noise_variance = 0.05;
  std::vector<std::int64_t> simulated{10, 100};  // real tokens: the cost grows with L
  if (options.size == Size::quick) simulated = {10, 30, 100, 300};
  if (options.size == Size::full) simulated = {10, 30, 100, 300, 1000};
  std::vector<General> out{
      {"noisy labels, shifted queries", shifted,
       tiny ? std::vector<std::int64_t>{10, 100, 1000}
            : std::vector<std::int64_t>{10, 30, 100, 300, 1000, 10000, 100000}},
      {"±1 features, noisy labels", coin, simulated}};
  return out;
}

struct Cell {
  std::size_t setting;
  std::int64_t L;  // 0: the reference
};

std::vector<Cell> cells(const Options& options) {
  std::vector<Cell> out;
  const std::vector<General> all = settings(options);
  for (std::size_t i = 0; i < all.size(); ++i) {
    out.push_back({i, 0});
    for (const std::int64_t L : all[i].lengths) out.push_back({i, L});
  }
  return out;
}

std::vector<std::string> keys(const Options& options) {
  const std::vector<General> all = settings(options);
  std::vector<std::string> out;
  for (const Cell& c : cells(options)) {
    out.push_back("theorem-4.3/" + all[c.setting].name +
                  "/L=" + (c.L == 0 ? "inf" : std::to_string(c.L)));
  }
  return out;
}

std::vector<Row> compute(const Options& options, std::size_t index) {
  const Cell cell = cells(options).at(index);
  const General general = settings(options).at(cell.setting);
  TwinSetup setup = twin_setup(options, general.task, ParameterSpace::block);
  setup.flow.stationary = 1e-6;
  setup.points = 20;
  if (cell.L == 0) return {reference_row(kId, general.name, setup, 1)};
  return twin_rows(kId, general.name, setup, ModelKind::softmax, cell.L, options.sign(kId), false);
}

std::vector<std::string> formulas() {
  using namespace mathml;
  const std::string lim = sub(id("lim"), id("t") + op("→") + op("∞"));
  const auto risk = [&](const std::string& at) {
    return lim + sub(id("R"), at) + paren(sub(id("θ"), at) + paren(id("t")));
  };
  return {
      math(risk(id("L")) + op("≤") + risk(op("∞")) + op("+") + id("ε") + text("   for L ≥ L(ε)"))};
}

SectionReport report(const Options& options, const std::vector<Row>& rows) {
  std::map<std::string, Row> reference;
  for (const Row& row : rows) {
    if (row["kind"] == "reference") reference[row["setting"]] = row;
  }
  Json curves = Json::array(), table = Json::array();
  std::string trouble, good;
  std::vector<std::string> hypotheses;
  for (const General& general : settings(options)) {
    const Row& limit = reference.at(general.name);
    const double floor = limit["risk"], floor_error = limit["std_error"];
    hypotheses.push_back(
        general.name +
        ": tokens are sub-Gaussian given the task; the infinite-prompt flow converges (" +
        limit["status"].get<std::string>() + ", t = " + show(limit["t"].get<double>()) +
        ") to risk " + show(floor, floor_error));
    std::vector<double> excess, errors;
    for (const Row& row : rows) {
      if (row["kind"] != "twin" || row["setting"] != general.name) continue;
      const double risk = row["risk"], error = row["std_error"];
      excess.push_back(risk - floor);
      errors.push_back(std::hypot(error, floor_error));
      curves.push_back({{"task", general.name},
                        {"L", row["L"]},
                        {"excess", risk - floor},
                        {"low", risk - floor - 2 * errors.back()},
                        {"high", risk - floor + 2 * errors.back()}});
      table.push_back({general.name, row["L"], risk, error, floor, risk - floor, row["distance"],
                       row["status"]});
    }
    const double allowed = std::max(0.2 * excess.front(), 4 * errors.back());
    if (excess.back() > allowed) {
      trouble = general.name + ": at L = " + show(general.lengths.back()) +
                " the limiting risk is still " + show(excess.back()) +
                " above that of the infinite prompt (" + show(excess.front()) +
                " at L = " + show(general.lengths.front()) + ")";
    }
    good += (good.empty() ? "" : "; ") + general.name + ": excess " +
            show(excess.front(), errors.front()) + " at L = " + show(general.lengths.front()) +
            ", " + show(excess.back(), errors.back()) + " at L = " + show(general.lengths.back());
  }
  Json section = {
      {"statement",
       "For any in-context task with sub-Gaussian tokens: if training with infinite prompts "
       "converges, training with long enough prompts ends at a risk at most ε higher. The theorem "
       "does not say the limit is good, only that finite prompts reach it."},
      {"hypotheses", hypotheses},
      {"verdict",
       verdict("holds", "The excess over the infinite-prompt limit vanishes: " + good + ".",
               trouble)},
      {"text",
       "Two tasks outside Theorem 5.1. In the first the labels are noisy and queries come from "
       "another covariance than prompts; its risks are exact over tokens. In the second the "
       "features are ±1, so the limit operator is not linear; its risks are averages over a fixed "
       "sample of tasks and prompts, and the end of training is judged on fresh ones, with "
       "standard errors. Parameters are the block (A, b) of the paper."},
      {"formulas", formulas()},
      {"figures",
       {{{"id", "excess"},
         {"caption",
          "Risk at the end of training, above that of the infinite prompt, against prompt length; "
          "bands are two standard errors. Points at or below zero cannot be drawn on a log axis."},
         {"spec",
          curve_chart({.data = "t43_curves",
                       .x = {.column = "L", .title = "prompt length L", .log = true},
                       .y = {.column = "excess", .title = "limiting risk above L = ∞", .log = true},
                       .series = "task",
                       .low = "low",
                       .high = "high"})}}}},
      {"tables",
       {{{"title", "End of training"},
         {"columns",
          {"task", "L", "limiting risk", "standard error", "at L = ∞", "excess",
           "distance of parameters, relative", "flow"}},
         {"rows", table}}}}};
  return {section, {{"t43_curves", curves}}};
}

}  // namespace

Section theorem_4_3() {
  return {kId, "Theorem 4.3: long prompts train as well as infinite ones", keys, compute, report};
}

}  // namespace esscher::paper
