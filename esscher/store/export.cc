#include "esscher/store/export.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/io/npz.h"

namespace esscher {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A column without structure: a column of the run, or one entry of an array.
struct FlatColumn {
  std::string name;
  ColumnType type;
  std::vector<Value> values;  // one per row
};

using Place = std::vector<Index>;  // of an entry in an array

std::string entry_name(const std::string& column, const Place& place) {
  std::string out = column;
  for (const Index i : place) out += "_" + std::to_string(i);
  return out;
}

// All places that the arrays of a column have in some row. Arrays of two rows may differ in shape.
std::set<Place> places_of(const RecordTable& table, std::size_t column) {
  std::set<Place> out;
  for (const Record& record : table.rows) {
    const auto* array = std::get_if<NumberArray>(&record[column]);
    if (array == nullptr) continue;
    const Index cols = array->shape.size() == 2 ? array->shape[1] : 0;
    for (Index i = 0; i < static_cast<Index>(array->values.size()); ++i) {
      out.insert(array->shape.size() == 2 ? Place{i / cols, i % cols} : Place{i});
    }
  }
  return out;
}

Value entry_of(const Value& value, const Place& place) {
  const auto* array = std::get_if<NumberArray>(&value);
  if (array == nullptr || array->shape.size() != place.size()) return {};
  for (std::size_t k = 0; k < place.size(); ++k) {
    if (place[k] >= array->shape[k]) return {};
  }
  const Index at = place.size() == 2 ? place[0] * array->shape[1] + place[1] : place[0];
  return array->values[static_cast<std::size_t>(at)];
}

std::vector<FlatColumn> flat_columns(const RecordTable& table) {
  std::vector<FlatColumn> out;
  const auto add = [&](const std::string& name, ColumnType type, const auto& value) {
    FlatColumn& flat = out.emplace_back(FlatColumn{name, type, {}});
    for (const Record& record : table.rows) flat.values.push_back(value(record));
  };
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    if (column.type == ColumnType::table) continue;
    if (column.type != ColumnType::array) {
      add(column.name, column.type, [&](const Record& record) { return record[c]; });
      continue;
    }
    for (const Place& place : places_of(table, c)) {
      add(entry_name(column.name, place), ColumnType::real,
          [&](const Record& record) { return entry_of(record[c], place); });
    }
  }
  return out;
}

bool is_absent(const Value& value) { return std::holds_alternative<std::monostate>(value); }

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? "\"\"" : std::string(1, c));
  return out.append("\"");
}

std::string csv_field(const Value& value) {
  struct Writer {
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(bool x) const { return x ? "true" : "false"; }
    std::string operator()(std::int64_t x) const { return std::to_string(x); }
    std::string operator()(double x) const {
      return std::isfinite(x) ? dump(Json(x)) : to_text(std::isnan(x) ? kNaN : x);
    }
    std::string operator()(const std::string& x) const { return quoted(x); }
    std::string operator()(Length x) const { return x.text(); }
    std::string operator()(const NumberArray&) const { return ""; }
    std::string operator()(const RecordTable&) const { return ""; }
  };
  return std::visit(Writer{}, value);
}

// A number of any type as a double.
double real_of(const Value& value) {
  if (const auto* x = std::get_if<double>(&value)) return *x;
  if (const auto* x = std::get_if<std::int64_t>(&value)) return static_cast<double>(*x);
  if (const auto* x = std::get_if<bool>(&value)) return *x ? 1 : 0;
  if (const auto* x = std::get_if<Length>(&value)) {
    return x->is_infinite() ? std::numeric_limits<double>::infinity()
                            : static_cast<double>(x->count());
  }
  return kNaN;
}

template <class T>
Array array_from(DType dtype, const std::vector<T>& values, std::vector<std::int64_t> shape) {
  const auto bytes = std::as_bytes(std::span(values));
  auto owner = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  return {dtype, std::move(shape), false, Bytes(*owner), owner};
}

template <class T>
Array column_from(DType dtype, const std::vector<T>& values) {
  return array_from(dtype, values, {static_cast<std::int64_t>(values.size())});
}

template <class To, class Read>
std::vector<To> converted(const FlatColumn& column, const Read& read) {
  std::vector<To> out;
  for (const Value& value : column.values) out.push_back(read(value));
  return out;
}

void add_text(std::map<std::string, Array>& arrays, const FlatColumn& column) {
  std::vector<std::string> texts;
  std::map<std::string, std::int64_t> codes;
  std::vector<std::int64_t> coded;
  std::size_t width = 1;
  for (const Value& value : column.values) {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) {
      coded.push_back(-1);
      continue;
    }
    const auto [found, is_new] = codes.try_emplace(*text, static_cast<std::int64_t>(texts.size()));
    if (is_new) texts.push_back(*text);
    width = std::max(width, text->size());
    coded.push_back(found->second);
  }
  std::vector<std::uint8_t> bytes(texts.size() * width, 0);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::copy(texts[i].begin(), texts[i].end(), bytes.begin() + static_cast<long>(i * width));
  }
  arrays[column.name] = column_from(DType::i64, coded);
  arrays[column.name + ".text"] =
      array_from(DType::u8, bytes,
                 {static_cast<std::int64_t>(texts.size()), static_cast<std::int64_t>(width)});
}

void add_column(std::map<std::string, Array>& arrays, const FlatColumn& column) {
  const bool whole = std::none_of(column.values.begin(), column.values.end(), is_absent);
  if (column.type == ColumnType::text) {
    add_text(arrays, column);
  } else if (column.type == ColumnType::boolean && whole) {
    arrays[column.name] = column_from(
        DType::boolean,
        converted<std::uint8_t>(column, [](const Value& x) { return std::get<bool>(x) ? 1 : 0; }));
  } else if (column.type == ColumnType::integer && whole) {
    arrays[column.name] = column_from(
        DType::i64,
        converted<std::int64_t>(column, [](const Value& x) { return std::get<std::int64_t>(x); }));
  } else {
    arrays[column.name] = column_from(DType::f64, converted<double>(column, real_of));
  }
}

Json document_row(const RecordTable& table, const Record& record) {
  std::vector<Column> columns;
  Record present;
  for (std::size_t i = 0; i < record.size(); ++i) {
    if (is_absent(record[i])) continue;
    columns.push_back(table.columns[i]);
    present.push_back(record[i]);
  }
  return record_json(columns, present);
}

}  // namespace

std::string export_npz(const RecordTable& table) {
  std::map<std::string, Array> arrays;
  for (const FlatColumn& column : flat_columns(table)) add_column(arrays, column);
  return std::string(as_text(encode_npz(arrays)));
}

std::string export_npz(const Run& run) { return export_npz(run.keyed_table()); }
std::string export_csv(const Run& run) { return export_csv(run.keyed_table()); }
std::string export_json(const Run& run) { return export_json(run, "", run.keyed_table()); }

std::string export_csv(const RecordTable& table) {
  const std::vector<FlatColumn> columns = flat_columns(table);
  std::string out;
  const auto line = [&](const auto& field) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      out.append(i == 0 ? "" : ",").append(field(columns[i]));
    }
    out.append("\r\n");
  };
  line([](const FlatColumn& column) { return quoted(column.name); });
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    line([&](const FlatColumn& column) { return csv_field(column.values[row]); });
  }
  return out;
}

std::string export_json(const Run& run, const std::string& name, const RecordTable& table) {
  const RunInfo& info = run.info();
  Json document{{"verb", info.verb},          {"seed", info.seed},
                {"config", info.config_toml}, {"columns", Json::array()},
                {"declared", Json::array()},  {"rows", Json::array()}};
  if (!name.empty()) document["table"] = name;
  for (const Column& column : table.columns) {
    document["columns"].push_back(column.name);
    document["declared"].push_back(column_json(column));
  }
  for (const Record& record : table.rows) document["rows"].push_back(document_row(table, record));
  return dump_pretty(document);
}

}  // namespace esscher
