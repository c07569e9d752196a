#include "esscher/store/export.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <unordered_set>
#include <vector>

#include "esscher/io/npz.h"

namespace esscher {
namespace {

struct Table {
  std::vector<std::string> columns;  // the first is "cell"
  std::vector<Row> rows;
};

Table table_of(const Run& run) {
  Table table{{"cell"}, {}};
  std::unordered_set<std::string> seen{"cell"};
  for (const auto& cell : run.cells()) {
    for (auto& values : Json::parse(cell.rows)) {
      Row row{{"cell", cell.key}};
      for (auto& [column, value] : values.items()) {
        if (seen.insert(column).second) table.columns.push_back(column);
        row[column] = std::move(value);
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? "\"\"" : std::string(1, c));
  return out.append("\"");
}

std::string csv_field(const Row& row, const std::string& column) {
  const auto found = row.find(column);
  if (found == row.end() || found->is_null()) return "";
  return found->is_string() ? quoted(found->get_ref<const std::string&>()) : dump(*found);
}

// The values of one column, null where a row has none.
std::vector<Json> values_of(const Table& table, const std::string& column) {
  std::vector<Json> out;
  for (const auto& row : table.rows) out.push_back(row.value(column, Json(nullptr)));
  return out;
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

void add_text(std::map<std::string, Array>& arrays, const std::string& column,
              const std::vector<Json>& values) {
  std::vector<std::string> texts;
  std::map<std::string, std::int64_t> codes;
  std::vector<std::int64_t> coded;
  std::size_t width = 1;
  for (const auto& value : values) {
    const std::string text = value.is_string() ? value.get<std::string>() : dump(value);
    if (value.is_null()) {
      coded.push_back(-1);
      continue;
    }
    const auto [found, is_new] = codes.try_emplace(text, static_cast<std::int64_t>(texts.size()));
    if (is_new) texts.push_back(text);
    width = std::max(width, text.size());
    coded.push_back(found->second);
  }
  std::vector<std::uint8_t> bytes(texts.size() * width, 0);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::copy(texts[i].begin(), texts[i].end(), bytes.begin() + static_cast<long>(i * width));
  }
  arrays[column] = column_from(DType::i64, coded);
  arrays[column + ".text"] =
      array_from(DType::u8, bytes,
                 {static_cast<std::int64_t>(texts.size()), static_cast<std::int64_t>(width)});
}

void add_column(std::map<std::string, Array>& arrays, const std::string& column,
                const std::vector<Json>& values) {
  const auto all = [&](auto is) { return std::all_of(values.begin(), values.end(), is); };
  if (all([](const Json& x) { return x.is_boolean(); })) {
    std::vector<std::uint8_t> out;
    for (const auto& value : values) out.push_back(value.get<bool>() ? 1 : 0);
    arrays[column] = column_from(DType::boolean, out);
  } else if (all([](const Json& x) { return x.is_number_integer(); })) {
    std::vector<std::int64_t> out;
    for (const auto& value : values) out.push_back(value.get<std::int64_t>());
    arrays[column] = column_from(DType::i64, out);
  } else if (all([](const Json& x) { return x.is_number() || x.is_null(); })) {
    std::vector<double> out;
    for (const auto& value : values) {
      out.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                    : value.get<double>());
    }
    arrays[column] = column_from(DType::f64, out);
  } else {
    add_text(arrays, column, values);
  }
}

}  // namespace

std::string export_npz(const Run& run) {
  const Table table = table_of(run);
  std::map<std::string, Array> arrays;
  for (const auto& column : table.columns) add_column(arrays, column, values_of(table, column));
  return std::string(as_text(encode_npz(arrays)));
}

std::string export_csv(const Run& run) {
  const Table table = table_of(run);
  std::string out;
  const auto line = [&](const auto& field) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      out.append(i == 0 ? "" : ",").append(field(table.columns[i]));
    }
    out.append("\r\n");
  };
  line([](const std::string& column) { return quoted(column); });
  for (const auto& row : table.rows) {
    line([&](const std::string& column) { return csv_field(row, column); });
  }
  return out;
}

std::string export_json(const Run& run) {
  Table table = table_of(run);
  const RunInfo& info = run.info();
  return dump_pretty({{"verb", info.verb},
                      {"seed", info.seed},
                      {"config", info.config_toml},
                      {"columns", table.columns},
                      {"rows", std::move(table.rows)}});
}

}  // namespace esscher
