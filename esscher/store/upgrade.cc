#include "esscher/store/detail/upgrade.h"

#include <algorithm>
#include <map>
#include <string>

#include "esscher/base/error.h"
#include "esscher/json/rows.h"
#include "esscher/store/detail/layouts.h"
#include "esscher/store/detail/old_rows.h"
#include "esscher/store/schema.h"

namespace esscher {
namespace {

bool is_stored_number(const Json& value) {
  return value.is_number() || value == "inf" || value == "-inf" || value == "nan";
}

ColumnType type_of(std::span<const Json* const> values) {
  const auto all = [&](auto is) {
    return std::all_of(values.begin(), values.end(), [&](const Json* value) { return is(*value); });
  };
  if (all([](const Json& x) { return x.is_boolean(); })) return ColumnType::boolean;
  if (all([](const Json& x) { return x.is_number_integer(); })) return ColumnType::integer;
  if (all(is_stored_number)) return ColumnType::real;
  if (all([](const Json& x) { return x.is_string(); })) return ColumnType::text;
  if (all([](const Json& x) { return x.is_array() && (x.empty() || !x[0].is_object()); })) {
    return ColumnType::array;
  }
  return ColumnType::table;
}

}  // namespace

std::vector<Column> inferred_columns(const std::vector<Json>& rows,
                                     const std::map<std::string, ColumnType>& types) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<const Json*>> values;
  for (const Json& row : rows) {
    for (const auto& [name, value] : row.items()) {
      const auto [found, is_new] = values.try_emplace(name);
      if (is_new) names.push_back(name);
      if (!value.is_null()) found->second.push_back(&value);
    }
  }
  std::vector<Column> out;
  for (const std::string& name : names) {
    const std::vector<const Json*>& known = values[name];
    const auto told = types.find(name);
    const ColumnType inferred = known.empty() ? ColumnType::real : type_of(known);
    Column column{.name = name,
                  .type = told != types.end() ? told->second : inferred,
                  .unit = "",
                  .meaning = "",
                  .optional = known.size() < rows.size(),
                  .parts = {}};
    if (column.type == ColumnType::table) {
      std::vector<Json> parts;
      for (const Json* table : known) parts.insert(parts.end(), table->begin(), table->end());
      column.parts = inferred_columns(parts);
    }
    out.push_back(std::move(column));
  }
  return out;
}

void upgrade_1_to_2(Database& database) {
  database.execute(R"sql(
CREATE TABLE documents(name TEXT PRIMARY KEY, json TEXT NOT NULL, digest INTEGER NOT NULL)
  WITHOUT ROWID;
ALTER TABLE provenance ADD COLUMN engine TEXT NOT NULL DEFAULT '';
ALTER TABLE results ADD COLUMN digest INTEGER NOT NULL DEFAULT 0;
)sql");
  auto update = database.prepare("UPDATE results SET digest = ?2 WHERE ordinal = ?1");
  auto all = database.prepare("SELECT ordinal, key, rows FROM results JOIN cells USING (ordinal)");
  while (all.step()) {
    update.bind(1, all.integer(0)).bind(2, digest({all.text(1), all.text(2)})).run();
  }
}

void upgrade_2_to_3(Database& database) {
  database.execute(R"sql(
CREATE TABLE layouts(id INTEGER PRIMARY KEY, columns TEXT NOT NULL UNIQUE);
ALTER TABLE cells ADD COLUMN layout INTEGER NOT NULL DEFAULT 1;
)sql");  // SQLite adds no REFERENCES to a column with a default while foreign keys are checked
  const std::string verb = database.text("SELECT value FROM meta WHERE name = 'verb'");
  std::vector<Json> all_rows;
  auto write = database.prepare("UPDATE results SET rows = ?2 WHERE ordinal = ?1");
  auto all = database.prepare(
      "SELECT ordinal, rows, key, digest FROM results JOIN cells USING (ordinal) ORDER BY ordinal");
  while (all.step()) {
    if (digest({all.text(2), all.text(1)}) != all.integer(3)) {  // as version 2 had it
      throw FileError(database.name() + ": the file is damaged: cell \"" + all.text(2) +
                      "\" does not match its digest");
    }
    Json rows = parse_json(database.name(), all.text(1));
    for (Json& row : rows) {
      modernise(verb, row);
      all_rows.push_back(row);
    }
    write.bind(1, all.integer(0)).bind(2, dump(rows)).run();
  }
  const std::string columns = columns_text(inferred_columns(all_rows, old_types(verb)));
  database.prepare("INSERT INTO layouts VALUES(1, ?1)").bind(1, columns).run();
  auto update = database.prepare("UPDATE results SET digest = ?2 WHERE ordinal = ?1");
  auto cells =
      database.prepare("SELECT ordinal, key, rows FROM results JOIN cells USING (ordinal)");
  while (cells.step()) {
    update.bind(1, cells.integer(0)).bind(2, digest({cells.text(1), cells.text(2), columns})).run();
  }
}

}  // namespace esscher
