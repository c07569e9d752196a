// The way up from older versions of run.sqlite, one step per version. The steps are frozen: they
// know the names that the released programs wrote, not the row types of today.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "esscher/base/columns.h"
#include "esscher/json/json.h"
#include "esscher/store/database.h"

namespace esscher {

// Version 2 added documents, the engine of a cell and digests.
void upgrade_1_to_2(Database& database);
// Version 3 added declared columns, arrays and numbers that are not finite.
void upgrade_2_to_3(Database& database);

// Columns of rows that were written without a declaration: the type in `types`, else the one that
// all values of that name have, which is never a length. Unit and meaning are empty.
std::vector<Column> inferred_columns(const std::vector<Json>& rows,
                                     const std::map<std::string, ColumnType>& types = {});

}  // namespace esscher
