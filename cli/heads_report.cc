#include "cli/heads_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "esscher/report/chart.h"

namespace esscher::cli {
namespace {

constexpr const char* kLimitFormula =
    "<math display=\"block\"><msub><mi>T</mi><mi>lin</mi></msub><mo>(</mo><mi>q</mi><mo>)</mo>"
    "<mo>=</mo><mi>E</mi><mi>V</mi><mo>+</mo><mi>Cov</mi><mo>(</mo><mi>V</mi><mo>,</mo><mi>K</mi>"
    "<mo>)</mo><mspace width=\"0.2em\"/><mi>scale</mi><mspace width=\"0.2em\"/><mi>q</mi></math>";

std::string verdict_kind(const std::string& verdict) {
  if (verdict.starts_with("linear")) return "linear";
  if (verdict.starts_with("needs")) return "needs components";
  return verdict;
}

std::string count_sentence(const std::vector<Json>& rows) {
  std::map<std::string, int> counts;
  for (const Json& row : rows) ++counts[verdict_kind(row["verdict"])];
  std::vector<std::string> parts;
  for (const auto& [kind, count] : counts) parts.push_back(fmt::format("{} {}", count, kind));
  return fmt::format("{} heads: {}.", rows.size(), fmt::join(parts, ", "));
}

Json overview_table(const std::vector<Json>& rows) {
  Json body = Json::array();
  for (const Json& row : rows) {
    body.push_back({row["head"], row["n"], row["d"], row["tau2"], row["ess"], row["frozen"],
                    row["lin"], row["lin_c"], row["control_lin_c"], row["linear_from_text"],
                    row["verdict"]});
  }
  return {{"title", "One row per head"},
          {"columns",
           {"head", "n", "d", "tau2", "ESS", "frozen", "lin", "lin_c", "control", "10 % from L",
            "verdict"}},
          {"rows", body}};
}

Json overview_section(const std::vector<Json>& rows) {
  const auto largest = std::max_element(rows.begin(), rows.end(), [](const Json& a, const Json& b) {
    return a["lin_c"].get<double>() - a["control_lin_c"].get<double>() <
           b["lin_c"].get<double>() - b["control_lin_c"].get<double>();
  });
  const std::string caption = fmt::format(
      "A head on the control's level errs because its prompt is short; one far above it errs "
      "because its keys are not Gaussian. Farthest above: {} ({:.2f} against {:.2f}).",
      (*largest)["head"].get<std::string>(), (*largest)["lin_c"].get<double>(),
      (*largest)["control_lin_c"].get<double>());
  const Json spec =
      scatter_chart({.data = "heads",
                     .x = {.column = "tau2", .title = "score variance tau²"},
                     .y = {.column = "lin_c", .title = "error of the Gaussian limit"},
                     .series = "kind",
                     .series_title = "verdict",
                     .references = {{'y', 1.0, "no better than the mean value"}},
                     .tooltip = {"head", "tau2", "lin_c", "control_lin_c", "verdict"}});
  return {{"id", "overview"},
          {"title", "Which heads are linear in disguise"},
          {"text", count_sentence(rows)},
          {"formulas", {kLimitFormula}},
          {"figures", {{{"id", "error-tau2"}, {"spec", spec}, {"caption", caption}}}},
          {"tables", {overview_table(rows)}}};
}

Json surrogate_table(const Json& row) {
  Json body = Json::array();
  body.push_back({"mean value", row["mean_only"]["lin"], row["mean_only"]["lin_c"], nullptr});
  body.push_back(
      {"linear, mean left in", row["uncentred"]["lin"], row["uncentred"]["lin_c"], nullptr});
  body.push_back({"Gaussian limit", row["gaussian"]["lin"], row["gaussian"]["lin_c"],
                  row["gaussian_split"]["lin_c"]});
  for (const Json& mixture : row["mixtures"]) {
    body.push_back({fmt::format("mixture of {}", mixture["k"].get<Index>()),
                    mixture["in_sample"]["lin"], mixture["in_sample"]["lin_c"],
                    mixture["split"].is_null() ? Json(nullptr) : mixture["split"]["lin_c"]});
  }
  return {{"title", "Error of each surrogate (medians over queries)"},
          {"columns", {"surrogate", "lin", "lin_c", "lin_c on unseen keys"}},
          {"rows", body}};
}

Json cost_table(const Json& row) {
  Json body = Json::array();
  for (const Json& cost : row["cost"]) {
    body.push_back({cost["surrogate"], cost["state"], cost["multiply_adds"]});
  }
  return {{"title", "Cost per query"},
          {"columns", {"surrogate", "numbers kept", "multiply-adds"}},
          {"rows", body}};
}

// Datasets of one head: error against prefix length, score histogram beside the Gaussian.
void add_datasets(const Json& row, const std::string& id, Json& datasets) {
  Json measured = Json::array();
  Json histogram = Json::array();
  for (const Json& prefix : row["prefixes"]) {
    measured.push_back({{"n", prefix["n"]}, {"error", prefix["lin_c"]}, {"series", "this head"}});
    measured.push_back({{"n", prefix["n"]},
                        {"error", prefix["control"]},
                        {"low", prefix["control_low"]},
                        {"high", prefix["control_high"]},
                        {"series", "Gaussian keys, exact"}});
  }
  const Json& bins = row["score_histogram"];
  const double width = 10.0 / static_cast<double>(bins.size());
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const double x = -5.0 + width * (static_cast<double>(i) + 0.5);
    const double normal = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    histogram.push_back({{"x", x}, {"density", bins[i]}, {"series", "scores"}});
    histogram.push_back({{"x", x}, {"density", normal}, {"series", "Gaussian"}});
  }
  datasets["prefix-" + id] = measured;
  datasets["scores-" + id] = histogram;
}

Json head_section(const Json& row, const std::string& id) {
  const Json prefix =
      curve_chart({.data = "prefix-" + id,
                   .x = {.column = "n", .title = "keys in the prompt", .log = true},
                   .y = {.column = "error", .title = "error of the limit", .log = true},
                   .series = "series",
                   .low = "low",
                   .high = "high"});
  const Json scores = curve_chart({.data = "scores-" + id,
                                   .x = {.column = "x", .title = "(score - mean) / tau"},
                                   .y = {.column = "density"},
                                   .series = "series",
                                   .points = false,
                                   .height = 220});
  const bool linear = verdict_kind(row["verdict"]) == "linear";
  Json figures = Json::array();
  if (!row["prefixes"].empty()) {
    figures.push_back(
        {{"id", "prefix-" + id},
         {"spec", prefix},
         {"caption", fmt::format("Error on the first n keys. The band is what Gaussian "
                                 "keys with this head's moments would show; the limit "
                                 "is within tolerance from L = {}.",
                                 row["linear_from_text"].get<std::string>())}});
  }
  figures.push_back({{"id", "scores-" + id},
                     {"spec", scores},
                     {"caption", fmt::format("Standardised scores of all queries; kurtosis {:.2f}, "
                                             "Gaussian 3.",
                                             row["kurtosis"].get<double>())}});
  return {{"id", id},
          {"title", row["head"]},
          {"verdict", {{"status", linear ? "holds" : "info"}, {"text", row["verdict"]}}},
          {"text", row["reason"]},
          {"figures", figures},
          {"tables", {surrogate_table(row), cost_table(row)}}};
}

}  // namespace

Json heads_report(const std::vector<Json>& rows) {
  Json heads = Json::array();
  Json datasets = Json::object();
  Json sections = Json::array();
  for (const Json& row : rows) {
    heads.push_back({{"head", row["head"]},
                     {"tau2", row["tau2"]},
                     {"lin_c", row["lin_c"]},
                     {"control_lin_c", row["control_lin_c"]},
                     {"verdict", row["verdict"]},
                     {"kind", verdict_kind(row["verdict"])}});
  }
  datasets["heads"] = heads;
  sections.push_back(overview_section(rows));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string id = "head-" + std::to_string(i);
    add_datasets(rows[i], id, datasets);
    sections.push_back(head_section(rows[i], id));
  }
  return {{"title", "Attention heads, diagnosed"},
          {"lead", count_sentence(rows)},
          {"sections", sections},
          {"datasets", datasets}};
}

}  // namespace esscher::cli
