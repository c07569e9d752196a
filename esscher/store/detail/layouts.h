// The declared columns in run.sqlite. Cells with the same columns share a layout; the column text of
// a layout is the JSON of json/rows.h, and it is part of the digest of every result.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/columns.h"
#include "esscher/store/database.h"

namespace esscher {

struct StoredLayout {
  std::int64_t id = 0;
  std::vector<Column> columns;
  std::vector<std::string> keys;  // the cells that have it, in declared order
};

std::string columns_text(std::span<const Column> columns);
std::vector<Column> columns_from_text(std::string_view where, std::string_view text);

// Inside a transaction. The contract is that of Run::declare.
void declare_cells(Database& database, std::span<const std::string> keys,
                   std::span<const Column> columns);

// In the order of their first cells.
std::vector<StoredLayout> read_layouts(Database& database);

// The columns of all layouts by name. Where two meanings differ the column has both; it is optional
// if one layout does not have it.
std::vector<Column> union_of(std::span<const StoredLayout> layouts);

// The rows of all finished cells under the union of their columns, with or without the column
// "cell". `where` starts the message of a FileError.
RecordTable table_of_cells(Database& database, const std::string& where, bool keyed);

}  // namespace esscher
