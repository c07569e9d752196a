#include "cli/heads_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <numbers>

#include "esscher/report/vega_lite.h"

namespace esscher::cli {
namespace {

constexpr const char* kLimitFormula =
    "<math display=\"block\"><msub><mi>T</mi><mi>lin</mi></msub><mo "
    "stretchy=\"false\">(</mo><mi>q</mi><mo stretchy=\"false\">)</mo>"
    "<mo>=</mo><mi>E</mi><mi>V</mi><mo>+</mo><mi>Cov</mi><mo "
    "stretchy=\"false\">(</mo><mi>V</mi><mo>,</mo><mi>K</mi>"
    "<mo stretchy=\"false\">)</mo><mspace width=\"0.2em\"/><mi>scale</mi><mspace "
    "width=\"0.2em\"/><mi>q</mi></math>";

// What a verdict says, without its numbers: the colour of a head.
std::string verdict_kind(const std::string& verdict) {
  if (verdict.starts_with("linear within")) return "roughly linear";
  if (verdict.starts_with("linear from")) return "linear from a longer prompt";
  if (verdict.starts_with("needs")) return "needs components";
  return verdict;
}

std::string count_sentence(const std::vector<Json>& rows) {
  std::map<std::string, int> counts;
  for (const Json& row : rows) ++counts[verdict_kind(row["verdict"])];
  std::vector<std::string> parts;
  for (const auto& [kind, count] : counts) parts.push_back(fmt::format("{} {}", count, kind));
  return fmt::format("{} {}: {}.", rows.size(), rows.size() == 1 ? "head" : "heads",
                     fmt::join(parts, ", "));
}

// Three digits: more are not worth reading in a table. The data keep them all.
Json brief(const Json& value) {
  if (!value.is_number_float()) return value;
  return std::strtod(fmt::format("{:.3g}", value.get<double>()).c_str(), nullptr);
}

Json overview_table(const std::vector<Json>& rows) {
  Json body = Json::array();
  for (const Json& row : rows) {
    body.push_back({row["head"], row["verdict"], brief(row["lin_c"]), brief(row["control_lin_c"]),
                    brief(row["lin"]), brief(row["tau2"]), brief(row["ess"]), brief(row["frozen"]),
                    row["linear_from_text"], row["n"], row["d"]});
  }
  return {{"title", "One row per head; a click on a column sorts"},
          {"columns",
           {"head", "verdict", "lin_c", "control", "lin", "tau²", "ESS", "frozen", "L needed", "n",
            "d"}},
          {"rows", body}};
}

// A log axis where the heads spread over more than a decade and nothing is zero.
Axis spread_axis(const std::vector<Json>& rows, const std::string& column,
                 const std::string& title) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const Json& row : rows) {
    low = std::min(low, row[column].get<double>());
    high = std::max(high, row[column].get<double>());
  }
  Axis axis{.column = column, .title = title};
  if (low > 0 && high > 10 * low) {
    axis.log = true;
    axis.min = low / 1.3;
    axis.max = 1.3 * high;
  } else {
    axis.min = 0;
    axis.max = high > 0 ? 1.1 * high : 1.0;
  }
  return axis;
}

Json overview_section(const std::vector<Json>& rows) {
  const auto largest = std::max_element(rows.begin(), rows.end(), [](const Json& a, const Json& b) {
    return a["lin_c"].get<double>() - a["control_lin_c"].get<double>() <
           b["lin_c"].get<double>() - b["control_lin_c"].get<double>();
  });
  const std::string caption = fmt::format(
      "One point per head. An error near the control of the table comes from a short prompt, one "
      "far above it from keys that are not Gaussian. Farthest above: {} ({:.2f} against {:.2f}).",
      (*largest)["head"].get<std::string>(), (*largest)["lin_c"].get<double>(),
      (*largest)["control_lin_c"].get<double>());
  const Json spec =
      scatter_chart({.data = "heads",
                     .x = spread_axis(rows, "tau2", "score variance tau²"),
                     .y = spread_axis(rows, "lin_c", "error of the Gaussian limit, lin_c"),
                     .series = "kind",
                     .series_title = "verdict",
                     .references = {{'y', 1.0, "no better than the mean value"}},
                     .tooltip = {"head", "tau2", "lin_c", "control_lin_c", "verdict"}});
  return {
      {"id", "overview"},
      {"title", "Which heads are linear in disguise"},
      {"text",
       "All figures are medians over queries, each with the prompt it really had. lin and lin_c "
       "are the error of the Gaussian limit relative to |T| and to |T - mean V| (1: no better "
       "than the mean value). control is what lin_c would be for Gaussian keys with the same "
       "moments and length, from the exact engine, and L needed the length from which such keys "
       "would be within the tolerance. frozen is the share of queries with n < exp(tau²)."},
      {"formulas", {kLimitFormula}},
      {"figures", {{{"id", "error-tau2"}, {"spec", spec}, {"caption", caption}}}},
      {"tables", {overview_table(rows)}}};
}

// Errors and cost of every surrogate, softmax itself first.
Json surrogate_table(const Json& row) {
  std::map<std::string, Json> costs;
  for (const Json& cost : row["cost"]) costs[cost["surrogate"]] = cost;
  Json body = Json::array();
  const auto add = [&](const std::string& title, const std::string& cost, const Json& in_sample,
                       const Json& split, const Json& control) {
    body.push_back({title, brief(in_sample["lin"]), brief(in_sample["lin_c"]),
                    split.is_null() ? Json(nullptr) : brief(split["lin_c"]), brief(control),
                    costs[cost]["state"], costs[cost]["multiply_adds"]});
  };
  add("softmax", "softmax", {{"lin", 0}, {"lin_c", 0}}, nullptr, nullptr);
  add("mean value", "mean", row["mean_only"], nullptr, nullptr);
  add("linear, mean left in", "uncentred", row["uncentred"], nullptr, nullptr);
  add("Gaussian limit", "gaussian", row["gaussian"], row["gaussian_split"], row["control_lin_c"]);
  for (const Json& mixture : row["mixtures"]) {
    const auto k = mixture["k"].get<Index>();
    const bool converged = mixture["converged"];
    add(fmt::format("mixture of {}{}", k, converged ? "" : ", EM stopped early"),
        fmt::format("mixture {}", k), mixture["in_sample"], mixture["split"],
        mixture["control_lin_c"]);
  }
  return {{"title",
           "Error and cost per query of each surrogate; control: its error on prompts of "
           "its own law, exactly"},
          {"columns",
           {"surrogate", "lin", "lin_c", "lin_c, unseen keys", "control", "numbers kept",
            "multiply-adds"}},
          {"rows", body}};
}

std::string three(const Json& value) {
  return value.is_null() ? "-" : fmt::format("{:.3g}", value.get<double>());
}

// The numbers of one head in a sentence each, with what they cover.
Json number_table(const Json& row) {
  Json body = Json::array();
  body.push_back({"score variance tau²",
                  fmt::format("{} (90 % of queries: {} to {})", three(row["tau2"]),
                              three(row["tau2_range"][0]), three(row["tau2_range"][1]))});
  body.push_back({"effective sample size",
                  fmt::format("{} of {} keys", three(row["ess"]), row["n"].get<Index>())});
  body.push_back({"frozen queries, n < exp(tau²)",
                  fmt::format("{:.3g} %", 100 * row["frozen"].get<double>())});
  body.push_back({"control, Gaussian keys",
                  fmt::format("{} (exact, all {} queries)", three(row["control_lin_c"]),
                              row["queries"].get<Index>())});
  for (const Json& mixture : row["mixtures"]) {
    if (mixture["k"] != row["best_k"] || mixture["control_lin_c"].is_null()) continue;
    body.push_back(
        {fmt::format("control, keys from the mixture of {}", mixture["k"].get<Index>()),
         fmt::format("{} (exact, {} of {} queries; best on unseen keys)",
                     three(mixture["control_lin_c"]), mixture["control_queries"].get<Index>(),
                     row["queries"].get<Index>())});
  }
  body.push_back({"Gaussian keys within tolerance from L", row["linear_from_text"]});
  return {{"title", row["causal"].get<bool>() ? "Numbers (causal head: each query sees the keys "
                                                "before it)"
                                              : "Numbers (every query sees every key)"},
          {"columns", {"quantity", "value"}},
          {"rows", body}};
}

// Error against prefix length, the exact prediction as a band.
Json prefix_data(const Json& row) {
  Json out = Json::array();
  for (const Json& prefix : row["prefixes"]) {
    out.push_back({{"n", prefix["n"]}, {"error", prefix["lin_c"]}, {"series", "this head"}});
    out.push_back({{"n", prefix["n"]},
                   {"error", prefix["control"]},
                   {"low", prefix["control_low"]},
                   {"high", prefix["control_high"]},
                   {"series", "Gaussian keys, exact"}});
  }
  return out;
}

// The histogram as an outline of steps over a filled band, the laws as curves.
Json score_data(const Json& row) {
  Json out = Json::array();
  const Json& bins = row["score_histogram"];
  const double width = 10.0 / static_cast<double>(bins.size());
  const Json& mixture = row["score_mixture"];
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const double left = -5.0 + width * static_cast<double>(i);
    for (const double x : {left, left + width * (1 - 1e-9)}) {
      out.push_back(
          {{"x", x}, {"density", bins[i]}, {"low", 0}, {"high", bins[i]}, {"series", "scores"}});
    }
    const double x = left + 0.5 * width;
    out.push_back({{"x", x},
                   {"density", std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi)},
                   {"series", "one Gaussian"}});
    if (mixture.is_null()) continue;
    out.push_back({{"x", x},
                   {"density", mixture["density"][i]},
                   {"series", fmt::format("mixture of {}", mixture["k"].get<Index>())}});
  }
  return out;
}

// Ends of the error axis with room for the points.
Axis error_axis(const Json& prefixes) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const Json& row : prefixes) {
    for (const char* key : {"error", "low", "high"}) {
      const double value = row.value(key, 0.0);
      if (value > 0) low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  Axis axis{.column = "error", .title = "error of the limit, lin_c", .log = true};
  if (high > 0) {
    axis.min = low / 1.15;
    axis.max = 1.15 * high;
  }
  return axis;
}

Json prefix_figure(const Json& row, const std::string& id, const Json& data) {
  const Json spec =
      curve_chart({.data = "prefix-" + id,
                   .x = {.column = "n", .title = "keys in the prompt, n", .log = true},
                   .y = error_axis(data),
                   .series = "series",
                   .series_title = "prompt",
                   .series_order = {"this head", "Gaussian keys, exact"},
                   .low = "low",
                   .high = "high",
                   .height = 280});
  return {{"id", "prefix-" + id},
          {"spec", spec},
          {"caption",
           fmt::format("Error on the first n keys. The band is what Gaussian keys with this head's "
                       "moments would show (80 % of queries, exact); they would be within the "
                       "tolerance {}{}.",
                       row["linear_from"].is_null() ? "" : "from L = ",
                       row["linear_from_text"].get<std::string>())}};
}

Json score_figure(const Json& row, const std::string& id) {
  const Json spec = curve_chart({.data = "scores-" + id,
                                 .x = {.column = "x", .title = "(score - mean) / tau"},
                                 .y = {.column = "density"},
                                 .series = "series",
                                 .series_title = "law",
                                 .low = "low",
                                 .high = "high",
                                 .points = false,
                                 .height = 220});
  return {
      {"id", "scores-" + id},
      {"spec", spec},
      {"caption", fmt::format("Standardised scores of all queries and the fitted laws; kurtosis "
                              "{:.2f}, Gaussian 3.",
                              row["kurtosis"].get<double>())}};
}

std::string sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + ".";
}

std::string status_of(const std::string& verdict) {
  if (verdict == "linear here") return "holds";
  return verdict == "not linearisable" ? "fails" : "info";
}

Json head_section(const Json& row, const std::string& id, const Json& prefixes) {
  Json figures = Json::array();
  if (!prefixes.empty()) figures.push_back(prefix_figure(row, id, prefixes));
  figures.push_back(score_figure(row, id));
  return {{"id", id},
          {"title", row["head"]},
          {"verdict", {{"status", status_of(row["verdict"])}, {"text", row["verdict"]}}},
          {"text", sentence(row["reason"])},
          {"figures", figures},
          {"tables", {number_table(row), surrogate_table(row)}}};
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
    datasets["prefix-" + id] = prefix_data(rows[i]);
    datasets["scores-" + id] = score_data(rows[i]);
    sections.push_back(head_section(rows[i], id, datasets["prefix-" + id]));
  }
  return {{"title", "Attention heads, diagnosed"},
          {"lead", count_sentence(rows)},
          {"sections", sections},
          {"datasets", datasets}};
}

}  // namespace esscher::cli
