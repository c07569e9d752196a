// Columns of typed rows as a sheet of a page.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "esscher/report/page.h"

namespace esscher {

// The named columns of the rows, in this order.
template <HasColumns Row>
Sheet sheet_of_rows(const std::vector<Row>& rows, std::vector<std::string> names) {
  const std::vector<Column> all = columns_of<Row>();
  Sheet sheet{.columns = std::move(names), .rows = {}};
  for (const Row& row : rows) {
    const Record record = record_of(row);
    Record line;
    for (const std::string& name : sheet.columns) {
      const auto at = std::ranges::find(all, name, &Column::name) - all.begin();
      line.push_back(record.at(static_cast<std::size_t>(at)));
    }
    sheet.add_row(std::move(line));
  }
  return sheet;
}

// A log axis of time begins four decades before the end: the solver's first steps are far smaller.
template <class Row, class Time>
std::vector<Row> last_four_decades(const std::vector<Row>& rows, const Time& time) {
  double end = 0;
  for (const Row& row : rows) end = std::max(end, time(row));
  std::vector<Row> out;
  std::ranges::copy_if(rows, std::back_inserter(out),
                       [&](const Row& row) { return time(row) >= 1e-4 * end; });
  return out;
}

}  // namespace esscher
