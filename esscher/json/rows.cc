#include "esscher/json/rows.h"

#include <cmath>
#include <limits>

#include "esscher/base/error.h"

namespace esscher {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Doubles in the store: numbers, or one of three texts.
Json stored_number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

bool read_number(const Json& json, double& x) {
  if (json.is_number()) return x = json.get<double>(), true;
  if (!json.is_string()) return false;
  const auto& text = json.get_ref<const std::string&>();
  if (text == "inf") return x = kInfinity, true;
  if (text == "-inf") return x = -kInfinity, true;
  if (text == "nan") return x = kNaN, true;
  return false;
}

template <class Number>
Json array_json(const NumberArray& array, const Number& number) {
  Json out = Json::array();
  if (array.shape.size() == 1) {
    for (double x : array.values) out.push_back(number(x));
    return out;
  }
  auto next = array.values.begin();
  for (Index i = 0; i < array.shape[0]; ++i) {
    Json row = Json::array();
    for (Index j = 0; j < array.shape[1]; ++j) row.push_back(number(*next++));
    out.push_back(std::move(row));
  }
  return out;
}

// A list of numbers, or a list of lists of numbers of one length.
bool read_array(const Json& json, NumberArray& out) {
  if (!json.is_array()) return false;
  out.shape = {static_cast<Index>(json.size())};
  for (const Json& entry : json) {
    if (!entry.is_array()) {
      if (out.shape.size() != 1 || !read_number(entry, out.values.emplace_back())) return false;
      continue;
    }
    const auto width = static_cast<Index>(entry.size());
    if (out.shape.size() == 1 && out.values.empty()) out.shape.push_back(width);
    if (out.shape.size() != 2 || out.shape[1] != width) return false;
    for (const Json& x : entry) {
      if (!read_number(x, out.values.emplace_back())) return false;
    }
  }
  return true;
}

Json stored_rows(const RecordTable& table);

Json stored_value(const Value& value) {
  struct Writer {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(bool x) const { return x; }
    Json operator()(std::int64_t x) const { return x; }
    Json operator()(double x) const { return stored_number(x); }
    Json operator()(const std::string& x) const { return x; }
    Json operator()(Length x) const { return number(x); }
    Json operator()(const NumberArray& x) const { return array_json(x, stored_number); }
    Json operator()(const RecordTable& x) const { return stored_rows(x); }
  };
  return std::visit(Writer{}, value);
}

Json stored_rows(const RecordTable& table) {
  Json out = Json::array();
  for (const Record& record : table.rows) {
    Json row = Json::object();
    for (std::size_t i = 0; i < record.size(); ++i) {
      if (std::holds_alternative<std::monostate>(record[i])) continue;
      row[table.columns[i].name] = stored_value(record[i]);
    }
    out.push_back(std::move(row));
  }
  return out;
}

RecordTable parse_json_rows(std::string_view where, std::vector<Column> columns, const Json& rows);

// False if the JSON is not a value of the column's type.
bool read_value(std::string_view where, const Column& column, const Json& json, Value& out) {
  switch (column.type) {
    case ColumnType::boolean:
      if (json.is_boolean()) out = json.get<bool>();
      return json.is_boolean();
    case ColumnType::integer:
      if (json.is_number_integer()) out = json.get<std::int64_t>();
      return json.is_number_integer();
    case ColumnType::real: return read_number(json, out.emplace<double>());
    case ColumnType::text:
      if (json.is_string()) out = json.get<std::string>();
      return json.is_string();
    case ColumnType::length:
      if (json == "inf") return out = Length::infinity(), true;
      if (!json.is_number_integer() || json.get<std::int64_t>() < 0) return false;
      return out = Length(json.get<std::int64_t>()), true;
    case ColumnType::array: return read_array(json, out.emplace<NumberArray>());
    case ColumnType::table:
      if (!json.is_array()) return false;
      out = parse_json_rows(std::string(where) + ", " + column.name, column.parts, json);
      return true;
  }
  return false;
}

RecordTable parse_json_rows(std::string_view where, std::vector<Column> columns, const Json& rows) {
  RecordTable out{std::move(columns), {}};
  if (!rows.is_array()) throw FileError(std::string(where) + ": expected a list of rows");
  for (const Json& row : rows) {
    if (!row.is_object()) throw FileError(std::string(where) + ": expected rows that are objects");
    Record record;
    for (const Column& column : out.columns) {
      Value& value = record.emplace_back();
      const auto found = row.find(column.name);
      if (found == row.end() || found->is_null()) continue;
      if (!read_value(where, column, *found, value)) {
        throw FileError(std::string(where) + ": column \"" + column.name + "\" holds " +
                        dump(*found).substr(0, 80) + ", expected a value of type " +
                        std::string(name(column.type)));
      }
    }
    out.rows.push_back(std::move(record));
  }
  return out;
}

}  // namespace

std::string rows_text(const RecordTable& rows) { return dump(stored_rows(rows)); }

RecordTable parse_rows(std::string_view where, std::vector<Column> columns, std::string_view text) {
  return parse_json_rows(where, std::move(columns), parse_json(where, text));
}

Json column_json(const Column& column) {
  Json out = {{"name", column.name},
              {"type", name(column.type)},
              {"unit", column.unit},
              {"meaning", column.meaning},
              {"optional", column.optional}};
  for (const Column& part : column.parts) out["parts"].push_back(column_json(part));
  return out;
}

Column column_from_json(std::string_view where, const Json& json) {
  try {
    Column column{json.at("name"),     parse_enum<ColumnType>(json.at("type").get<std::string>()),
                  json.at("unit"),     json.at("meaning"),
                  json.at("optional"), {}};
    if (json.contains("parts")) {
      for (const Json& part : json["parts"]) column.parts.push_back(column_from_json(where, part));
    }
    return column;
  } catch (const Json::exception& error) {
    throw FileError(std::string(where) + ": a column is not declared as expected: " + error.what());
  }
}

Json record_json(std::span<const Column> columns, const Record& record) {
  Json out = Json::object();
  for (std::size_t i = 0; i < record.size(); ++i) {
    const std::string& key = columns[i].name;
    if (const double* x = std::get_if<double>(&record[i])) {
      put(out, key, *x);
    } else if (const NumberArray* array = std::get_if<NumberArray>(&record[i])) {
      out[key] = array_json(*array, [](double entry) { return number(entry); });
    } else if (const RecordTable* table = std::get_if<RecordTable>(&record[i])) {
      out[key] = records_json(*table);
    } else {
      out[key] = stored_value(record[i]);
    }
  }
  return out;
}

Json records_json(const RecordTable& rows) {
  Json out = Json::array();
  for (const Record& record : rows.rows) out.push_back(record_json(rows.columns, record));
  return out;
}

}  // namespace esscher
