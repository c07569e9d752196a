// Rows as JSON, by the declaration of their columns (base/columns.h), in two forms.
//
//   for the store   [{"L":10,"asymptotic":"inf"},..]   every value reads back as it was: doubles
//                   that are not finite are the texts "inf", "-inf" and "nan"; what is absent is
//                   left out
//   for documents   {"L":10,"asymptotic":null,"not_finite":{"asymptotic":"inf"}}   plain JSON; what
//                   is absent is null
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/columns.h"
#include "esscher/json/json.h"

namespace esscher {

// The text of rows in the store.
std::string rows_text(const RecordTable& rows);

// Its inverse, one record per row in the order of `columns`. Keys that no column names are passed
// over. Throws FileError naming `where` and the column if a value has another type.
RecordTable parse_rows(std::string_view where, std::vector<Column> columns, std::string_view text);

// A column as {"name","type","unit","meaning","optional","parts"}, and back.
Json column_json(const Column& column);
Column column_from_json(std::string_view where, const Json& json);

// One row, and all of them, of a result document.
Json record_json(std::span<const Column> columns, const Record& record);
Json records_json(const RecordTable& rows);

template <HasColumns Row>
Json row_json(const Row& row) {
  return record_json(columns_of<Row>(), record_of(row));
}

template <HasColumns Row>
Json rows_json(const std::vector<Row>& rows) {
  return records_json(table_of(std::span<const Row>(rows)));
}

}  // namespace esscher
