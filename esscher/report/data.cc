#include "esscher/report/data.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/report/html.h"

namespace esscher {
namespace {

constexpr std::size_t kTableRows = 200;

std::string series_of(const Record& record) {
  std::string key;
  for (const Value& value : record) {
    if (const auto* text = std::get_if<std::string>(&value)) key.append(*text);
    if (const bool* truth = std::get_if<bool>(&value)) key.push_back(*truth ? '1' : '0');
    key.push_back('\x1f');
  }
  return key;
}

std::optional<double> number_of(const Value& value) {
  if (const double* x = std::get_if<double>(&value)) return *x;
  if (const auto* n = std::get_if<std::int64_t>(&value)) return static_cast<double>(*n);
  return std::nullopt;
}

std::optional<std::size_t> place_of(const Sheet& sheet, const char* column) {
  const auto found = std::find(sheet.columns.begin(), sheet.columns.end(), column);
  if (found == sheet.columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - sheet.columns.begin());
}

bool all_positive(const Sheet& sheet, std::size_t column) {
  return std::all_of(sheet.rows.begin(), sheet.rows.end(), [&](const Record& row) {
    const std::optional<double> x = number_of(row[column]);
    return x && *x > 0;
  });
}

PageTable first_rows(const Sheet& sheet) {
  const std::size_t n = sheet.rows.size();
  const std::size_t shown = std::min(n, kTableRows);
  PageTable table{.title = n <= kTableRows
                               ? "All " + std::to_string(n) + " rows"
                               : "The first " + std::to_string(shown) + " of " + std::to_string(n) +
                                     " rows; the page has all of them for download",
                  .sheet = {sheet.columns, {}}};
  for (std::size_t i = 0; i < shown; ++i) table.sheet.add_row(sheet.rows[i]);
  return table;
}

// value against L, the shape of every study of prompt length.
std::optional<Figure> figure_of(const Sheet& sheet) {
  const auto L = place_of(sheet, "L"), value = place_of(sheet, "value");
  if (!L || !value || sheet.rows.empty() || !all_positive(sheet, *L)) return std::nullopt;
  std::vector<const Record*> numbers;
  for (const Record& row : sheet.rows) {
    if (number_of(row[*value])) numbers.push_back(&row);
  }
  if (numbers.empty()) return std::nullopt;
  const auto [low, high] =
      std::minmax_element(numbers.begin(), numbers.end(), [&](const Record* a, const Record* b) {
        return *number_of((*a)[*value]) < *number_of((*b)[*value]);
      });
  const auto at = [&](const Record& row) {
    return to_text(*number_of(row[*value])) + " at L = " + cell_text(row[*L]);
  };
  CurveChart chart{.data = "rows",
                   .x = {.column = "L", .title = "prompt length L", .log = true},
                   .y = {.column = "value", .log = all_positive(sheet, *value)},
                   .series = place_of(sheet, "metric") ? "metric" : ""};
  return Figure{.id = "value-against-L",
                .chart = std::move(chart),
                .caption = "Column `value` against prompt length: the smallest is " + at(**low) +
                           ", the largest " + at(**high) + "."};
}

}  // namespace

Sheet thinned(const Sheet& sheet, std::size_t limit) {
  if (sheet.rows.size() <= limit) return sheet;
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < sheet.rows.size(); ++i) {
    groups[series_of(sheet.rows[i])].push_back(i);
  }
  std::vector<std::size_t> kept;
  for (const auto& [key, members] : groups) {
    const double share =
        static_cast<double>(members.size()) / static_cast<double>(sheet.rows.size());
    const auto room =
        std::max<std::size_t>(2, static_cast<std::size_t>(share * static_cast<double>(limit)));
    if (members.size() <= room) {
      kept.insert(kept.end(), members.begin(), members.end());
      continue;
    }
    for (std::size_t k = 0; k < room; ++k) {
      kept.push_back(members[k * (members.size() - 1) / (room - 1)]);
    }
  }
  std::sort(kept.begin(), kept.end());
  Sheet out{sheet.columns, {}};
  for (const std::size_t i : kept) out.add_row(sheet.rows[i]);
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

Page generic_page(const Run& run) {
  const Sheet sheet = sheet_of(run.table());
  const auto [done, total] = run.status();
  Section section{.id = "rows", .title = "Results"};
  section.text = done < total ? std::to_string(done) + " of " + std::to_string(total) +
                                    " cells are finished; this is what they say so far."
                              : "All " + std::to_string(total) + " cells are finished.";
  section.tables.push_back(first_rows(sheet));
  Page page{.title = "esscher " + run.info().verb,
            .lead = std::to_string(sheet.rows.size()) + " rows from " + std::to_string(done) +
                    " cells, seed " + std::to_string(run.info().seed) + "."};
  if (auto figure = figure_of(sheet)) {
    section.figures.push_back(*std::move(figure));
    page.datasets["rows"] = sheet;
  }
  page.sections.push_back(std::move(section));
  return page;
}

}  // namespace esscher
