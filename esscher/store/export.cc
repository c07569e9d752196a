#include "esscher/store/export.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

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

}  // namespace

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
