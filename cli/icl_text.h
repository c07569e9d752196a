// Typed rows as text, for the verbs `icl ..`.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cli/text_table.h"
#include "esscher/base/columns.h"
#include "esscher/base/number_text.h"

namespace esscher::cli {

inline std::string show(const Value& value) {
  if (const auto* x = std::get_if<double>(&value)) return std::isfinite(*x) ? brief(*x, 6) : "-";
  if (const auto* n = std::get_if<std::int64_t>(&value)) return std::to_string(*n);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* L = std::get_if<Length>(&value)) return L->text();
  if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "yes" : "no";
  return "-";
}

// Columns of typed rows, explained below by what their declarations say.
template <HasColumns Row>
std::string show_table(const std::vector<Row>& rows, const std::vector<std::string>& names) {
  const std::vector<Column> all = columns_of<Row>();
  std::vector<std::size_t> places;
  std::vector<TextColumn> columns;
  for (const std::string& name : names) {
    const auto at = std::ranges::find(all, name, &Column::name);
    places.push_back(static_cast<std::size_t>(at - all.begin()));
    columns.push_back({name, at->meaning, {}});
  }
  TextTable table(std::move(columns));
  for (const Row& row : rows) {
    const Record record = record_of(row);
    std::vector<std::string> cells;
    for (const std::size_t at : places) cells.push_back(show(record.at(at)));
    table.add(cells);
  }
  return table.text() + "\n" + explained({table});
}

// A line below a table whose rows are marked heavy.
template <class Row>
std::string heavy_note(const std::vector<Row>& rows) {
  if (!std::ranges::any_of(rows, [](const Row& row) { return row.heavy.value_or(false); })) {
    return "";
  }
  return "Rows marked heavy hang on few nodes or draws: their standard errors are too small. More "
         "nodes help (flow.log2_nodes).\n";
}

}  // namespace esscher::cli
