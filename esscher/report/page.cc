#include "esscher/report/page.h"

#include "esscher/base/error.h"

namespace esscher {

Verdict Verdict::unless(const std::string& trouble, VerdictStatus status, std::string text) {
  if (!trouble.empty()) return {VerdictStatus::fails, "Fails: " + trouble + "."};
  return {status, std::move(text)};
}

void Sheet::add_row(Record row) {
  check_dimension("Sheet", "row", static_cast<long>(row.size()), static_cast<long>(columns.size()));
  rows.push_back(std::move(row));
}

Sheet sheet_of(const RecordTable& table) {
  Sheet sheet;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnType type = table.columns[i].type;
    if (type == ColumnType::array || type == ColumnType::table) continue;
    kept.push_back(i);
    sheet.columns.push_back(table.columns[i].name);
  }
  for (const Record& record : table.rows) {
    Record row;
    for (const std::size_t i : kept) row.push_back(record[i]);
    sheet.rows.push_back(std::move(row));
  }
  return sheet;
}

}  // namespace esscher
