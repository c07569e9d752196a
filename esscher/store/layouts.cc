#include "esscher/store/detail/layouts.h"

#include <algorithm>
#include <map>
#include <optional>

#include "esscher/base/error.h"
#include "esscher/json/rows.h"
#include "esscher/store/detail/upgrade.h"

namespace esscher {
namespace {

constexpr const char* kCell = "cell";

// "length of the prompt" and "L" become "length of the prompt; or L".
void add_phrase(std::string& text, const std::string& phrase) {
  if (text == phrase || phrase.empty() || text.find(phrase) != std::string::npos) return;
  text += (text.empty() ? "" : "; or ") + phrase;
}

Column* find(std::vector<Column>& columns, const std::string& name) {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

void check_columns(Database& database, std::span<const Column> columns) {
  std::vector<Column> known = union_of(read_layouts(database));
  for (const Column& column : columns) {
    if (column.name == kCell) {
      throw_argument("Run::declare", "a column", "\"cell\"",
                     "another name: exports give it to the key of the cell");
    }
    const Column* same = find(known, column.name);
    if (same == nullptr || same->type == column.type) continue;
    throw_argument("Run::declare", "column \"" + column.name + "\"",
                   "of type " + std::string(name(column.type)),
                   std::string(name(same->type)) + ", as in other cells of the run");
  }
}

std::int64_t layout_id(Database& database, std::span<const Column> columns) {
  const std::string text = columns_text(columns);
  auto find_id = database.prepare("SELECT id FROM layouts WHERE columns = ?1");
  if (find_id.bind(1, text).step()) return find_id.integer(0);
  check_columns(database, columns);
  database.prepare("INSERT INTO layouts(columns) VALUES(?1)").bind(1, text).run();
  return database.integer("SELECT max(id) FROM layouts");
}

}  // namespace

std::string columns_text(std::span<const Column> columns) {
  Json out = Json::array();
  for (const Column& column : columns) out.push_back(column_json(column));
  return dump(out);
}

std::vector<Column> columns_from_text(std::string_view where, std::string_view text) {
  std::vector<Column> out;
  if (text.empty()) return out;
  for (const Json& column : parse_json(where, text)) out.push_back(column_from_json(where, column));
  return out;
}

void declare_cells(Database& database, std::span<const std::string> keys,
                   std::span<const Column> columns) {
  const std::int64_t layout = layout_id(database, columns);
  auto insert = database.prepare(
      "INSERT INTO cells(key, layout) VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET layout = ?2"
      " WHERE layout <> ?2 AND NOT EXISTS"
      " (SELECT 1 FROM results WHERE results.ordinal = cells.ordinal)");
  for (const auto& key : keys) insert.bind(1, key).bind(2, layout).run();
}

std::vector<StoredLayout> read_layouts(Database& database) {
  std::vector<StoredLayout> out;
  std::map<std::int64_t, std::size_t> places;
  auto cells = database.prepare("SELECT key, layout FROM cells ORDER BY ordinal");
  auto columns = database.prepare("SELECT columns FROM layouts WHERE id = ?1");
  while (cells.step()) {
    const std::int64_t id = cells.integer(1);
    const auto [place, is_new] = places.try_emplace(id, out.size());
    if (is_new) {
      if (!columns.bind(1, id).step()) {
        throw FileError(database.name() + ": the file is damaged: cell \"" + cells.text(0) +
                        "\" has no columns");
      }
      out.push_back(
          {.id = id, .columns = columns_from_text(database.name(), columns.text(0)), .keys = {}});
      columns.reset();
    }
    out[place->second].keys.push_back(cells.text(0));
  }
  return out;
}

std::vector<Column> union_of(std::span<const StoredLayout> layouts) {
  std::vector<Column> out;
  std::map<std::string, std::size_t> uses;
  for (const StoredLayout& layout : layouts) {
    for (const Column& column : layout.columns) {
      ++uses[column.name];
      Column* known = find(out, column.name);
      if (known == nullptr) {
        out.push_back(column);
        continue;
      }
      known->optional = known->optional || column.optional;
      add_phrase(known->unit, column.unit);
      add_phrase(known->meaning, column.meaning);
    }
  }
  for (Column& column : out) {
    column.optional = column.optional || uses[column.name] < layouts.size();
  }
  return out;
}

RecordTable table_of_cells(Database& database, const std::string& where, bool keyed) {
  const std::vector<StoredLayout> layouts = read_layouts(database);
  RecordTable out{union_of(layouts), {}};
  if (keyed) {
    out.columns.insert(out.columns.begin(), Column{.name = kCell,
                                                   .type = ColumnType::text,
                                                   .unit = "",
                                                   .meaning = "key of the cell",
                                                   .optional = false,
                                                   .parts = {}});
  }
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < out.columns.size(); ++i) places[out.columns[i].name] = i;
  auto cells = database.prepare(
      "SELECT key, rows, layout FROM results JOIN cells USING (ordinal) ORDER BY ordinal");
  while (cells.step()) {
    const auto layout = std::find_if(layouts.begin(), layouts.end(), [&](const StoredLayout& one) {
      return one.id == cells.integer(2);
    });
    RecordTable rows =
        parse_rows(where + ": cell \"" + cells.text(0) + "\"", layout->columns, cells.text(1));
    for (Record& values : rows.rows) {
      Record record(out.columns.size());
      if (keyed) record[0] = cells.text(0);
      for (std::size_t i = 0; i < values.size(); ++i) {
        record[places.at(rows.columns[i].name)] = std::move(values[i]);
      }
      out.rows.push_back(std::move(record));
    }
  }
  return out;
}

}  // namespace esscher
