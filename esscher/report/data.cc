#include "esscher/report/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/report/chart.h"

namespace esscher {
namespace {

constexpr std::size_t kTableRows = 200;

std::string series_of(const Json& row) {
  std::string key;
  for (const auto& [column, value] : row.items()) {
    if (value.is_string()) key.append(value.get_ref<const std::string&>());
    if (value.is_boolean()) key.push_back(value.get<bool>() ? '1' : '0');
    key.push_back('\x1f');
  }
  return key;
}

std::vector<std::string> columns_of(const std::vector<Row>& rows) {
  std::vector<std::string> columns;
  std::set<std::string> seen;
  for (const auto& row : rows) {
    for (const auto& [column, value] : row.items()) {
      if (seen.insert(column).second) columns.push_back(column);
    }
  }
  return columns;
}

bool all_positive(const std::vector<Row>& rows, const std::string& column) {
  return std::all_of(rows.begin(), rows.end(), [&](const Row& row) {
    return row.contains(column) && row[column].is_number() && row[column].get<double>() > 0;
  });
}

Json table_of(const std::vector<Row>& rows, const std::vector<std::string>& columns) {
  Json body = Json::array();
  for (std::size_t i = 0; i < std::min(rows.size(), kTableRows); ++i) body.push_back(rows[i]);
  const std::string title =
      rows.size() <= kTableRows
          ? fmt::format("All {} rows", rows.size())
          : fmt::format("The first {} of {} rows; the page has all of them for download",
                        kTableRows, rows.size());
  return {{"title", title}, {"columns", columns}, {"rows", body}};
}

// value against L, the shape of every study of prompt length.
std::optional<Json> figure_of(const std::vector<Row>& rows,
                              const std::vector<std::string>& columns) {
  const auto has = [&](const char* name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  if (rows.empty() || !has("L") || !has("value") || !all_positive(rows, "L")) return std::nullopt;
  const auto by_value = [](const Row& a, const Row& b) { return a["value"] < b["value"]; };
  std::vector<Row> numbers;
  for (const auto& row : rows) {
    if (row.contains("value") && row["value"].is_number()) numbers.push_back(row);
  }
  if (numbers.empty()) return std::nullopt;
  const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end(), by_value);
  CurveChart chart{.data = "rows",
                   .x = {.column = "L", .title = "prompt length L", .log = true},
                   .y = {.column = "value", .log = all_positive(rows, "value")},
                   .series = has("metric") ? "metric" : ""};
  const std::string caption = fmt::format(
      "Column `value` against prompt length: the smallest is {} at L = {}, the largest {} at L = "
      "{}.",
      to_text((*low)["value"].get<double>()), dump((*low)["L"]),
      to_text((*high)["value"].get<double>()), dump((*high)["L"]));
  return Json{{"id", "value-against-L"}, {"spec", curve_chart(chart)}, {"caption", caption}};
}

}  // namespace

Json thinned(const Json& rows, std::size_t limit) {
  if (rows.size() <= limit) return rows;
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) groups[series_of(rows[i])].push_back(i);
  std::vector<std::size_t> kept;
  for (const auto& [key, members] : groups) {
    const double share = static_cast<double>(members.size()) / static_cast<double>(rows.size());
    const auto room =
        std::max<std::size_t>(2, static_cast<std::size_t>(share * static_cast<double>(limit)));
    if (members.size() <= room) {
      kept.insert(kept.end(), members.begin(), members.end());
      continue;
    }
    for (std::size_t k = 0; k < room; ++k)
      kept.push_back(members[k * (members.size() - 1) / (room - 1)]);
  }
  std::sort(kept.begin(), kept.end());
  Json out = Json::array();
  for (const auto i : kept) out.push_back(rows[i]);
  return out;
}

std::set<std::string> dataset_names(const Json& spec) {
  std::set<std::string> names;
  if (spec.is_object() && spec.contains("data") && spec["data"].is_object() &&
      spec["data"].contains("name") && spec["data"]["name"].is_string()) {
    names.insert(spec["data"]["name"].get<std::string>());
  }
  if (spec.is_structured()) {
    for (const auto& child : spec) names.merge(dataset_names(child));
  }
  return names;
}

Json generic_report(const Run& run) {
  const auto rows = run.rows();
  const auto columns = columns_of(rows);
  const auto [done, total] = run.status();
  Json section{
      {"id", "rows"},
      {"title", "Results"},
      {"text",
       done < total
           ? fmt::format("{} of {} cells are finished; this is what they say so far.", done, total)
           : fmt::format("All {} cells are finished.", total)},
      {"tables", Json::array({table_of(rows, columns)})}};
  Json report{
      {"title", "esscher " + run.info().verb},
      {"lead", fmt::format("{} rows from {} cells, seed {}.", rows.size(), done, run.info().seed)}};
  if (const auto figure = figure_of(rows, columns)) {
    section["figures"] = Json::array({*figure});
    report["datasets"] = {{"rows", rows}};
  }
  report["sections"] = Json::array({section});
  return report;
}

}  // namespace esscher
