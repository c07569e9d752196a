#include "esscher/paper/section.h"

#include <optional>

#include "esscher/base/error.h"

namespace esscher::paper {

std::vector<Column> with_section(std::vector<Column> columns) {
  columns.insert(columns.begin(), {.name = "section",
                                   .type = ColumnType::text,
                                   .unit = "",
                                   .meaning = "the statement of the paper",
                                   .optional = false,
                                   .parts = {}});
  return columns;
}

RecordTable with_section(std::string_view id, RecordTable rows) {
  rows.columns = with_section(std::move(rows.columns));
  for (Record& record : rows.rows) record.insert(record.begin(), std::string(id));
  return rows;
}

SectionReport complete_rows(std::string_view where, std::string_view id,
                            const std::function<SectionReport()>& report) {
  try {
    return report();
  } catch (const std::bad_optional_access&) {
    throw FileError(std::string(where) + ": a row of section \"" + std::string(id) +
                    "\" lacks a column that its kind of row has");
  }
}

}  // namespace esscher::paper
