#include "esscher/report/page_json.h"

#include <algorithm>

#include "esscher/base/error.h"
#include "esscher/report/vega_lite.h"

namespace esscher {
namespace {

Json cell_json(const Value& value) {
  struct Writer {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(bool x) const { return x; }
    Json operator()(std::int64_t x) const { return x; }
    Json operator()(double x) const { return number(x); }
    Json operator()(const std::string& x) const { return x; }
    Json operator()(Length x) const { return number(x); }
    Json operator()(const NumberArray&) const { return nullptr; }  // a cell is one value
    Json operator()(const RecordTable&) const { return nullptr; }
  };
  return std::visit(Writer{}, value);
}

Value cell_of(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_null()) return {};
  return dump(json);
}

Json table_json(const PageTable& table) {
  Json rows = Json::array();
  for (const Record& record : table.sheet.rows) {
    Json row = Json::array();
    for (const Value& value : record) row.push_back(cell_json(value));
    rows.push_back(std::move(row));
  }
  return {{"title", table.title}, {"columns", table.sheet.columns}, {"rows", std::move(rows)}};
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  if (!found->is_string()) throw_argument("report", key, dump(*found), "a string");
  return found->get<std::string>();
}

const Json& list_of(const Json& object, const char* key) {
  static const Json empty = Json::array();
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return empty;
  if (!found->is_array()) throw_argument("report", key, dump(*found), "an array");
  return *found;
}

std::vector<std::string> texts_of(const Json& object, const char* key) {
  std::vector<std::string> out;
  for (const Json& text : list_of(object, key)) {
    if (!text.is_string()) throw_argument("report", key, dump(text), "a list of strings");
    out.push_back(text.get<std::string>());
  }
  return out;
}

PageTable table_of(const Json& json) {
  PageTable table{text_of(json, "title"), {texts_of(json, "columns"), {}}};
  for (const Json& row : list_of(json, "rows")) {
    Record record;
    if (row.is_array()) {
      for (const Json& value : row) record.push_back(cell_of(value));
    } else {
      for (const std::string& column : table.sheet.columns) {
        record.push_back(cell_of(row.value(column, Json(nullptr))));
      }
    }
    table.sheet.add_row(std::move(record));
  }
  return table;
}

std::optional<Verdict> verdict_of(const Json& section) {
  const auto found = section.find("verdict");
  if (found == section.end() || found->is_null()) return std::nullopt;
  return Verdict{parse_enum<VerdictStatus>(text_of(*found, "status")), text_of(*found, "text")};
}

Section section_of(const Json& json) {
  Section section{.id = text_of(json, "id"), .title = text_of(json, "title")};
  section.verdict = verdict_of(json);
  section.statement = text_of(json, "statement");
  section.hypotheses = texts_of(json, "hypotheses");
  section.text = text_of(json, "text");
  section.formulas = texts_of(json, "formulas");
  section.rerun = text_of(json, "rerun");
  for (const Json& figure : list_of(json, "figures")) {
    if (!figure.contains("spec")) throw_argument("report", "spec", "missing", "a specification");
    section.figures.push_back({.id = text_of(figure, "id"),
                               .chart = VegaLiteChart{dump(figure["spec"])},
                               .caption = text_of(figure, "caption")});
  }
  for (const Json& table : list_of(json, "tables")) section.tables.push_back(table_of(table));
  return section;
}

}  // namespace

Json sheet_json(const Sheet& sheet) {
  Json out = Json::array();
  for (const Record& record : sheet.rows) {
    Json row = Json::object();
    for (std::size_t i = 0; i < record.size(); ++i) row[sheet.columns[i]] = cell_json(record[i]);
    out.push_back(std::move(row));
  }
  return out;
}

Sheet sheet_from_json(const Json& rows) {
  Sheet sheet;
  for (const Json& row : rows) {
    for (const auto& [key, value] : row.items()) {
      const auto& known = sheet.columns;
      if (std::find(known.begin(), known.end(), key) == known.end()) sheet.columns.push_back(key);
    }
  }
  for (const Json& row : rows) {
    Record record;
    for (const std::string& column : sheet.columns) {
      const auto found = row.find(column);
      record.push_back(found == row.end() ? Value() : cell_of(*found));
    }
    sheet.add_row(std::move(record));
  }
  return sheet;
}

Json section_json(const Section& section) {
  Json out = {{"id", section.id}, {"title", section.title}};
  if (!section.statement.empty()) out["statement"] = section.statement;
  if (!section.hypotheses.empty()) out["hypotheses"] = section.hypotheses;
  if (section.verdict) {
    out["verdict"] = {{"status", name(section.verdict->status)}, {"text", section.verdict->text}};
  }
  if (!section.text.empty()) out["text"] = section.text;
  if (!section.formulas.empty()) out["formulas"] = section.formulas;
  for (const Figure& figure : section.figures) {
    out["figures"].push_back(
        {{"id", figure.id}, {"caption", figure.caption}, {"spec", vega_lite(figure.chart)}});
  }
  for (const PageTable& table : section.tables) out["tables"].push_back(table_json(table));
  if (!section.rerun.empty()) out["rerun"] = section.rerun;
  return out;
}

Json page_json(const Page& page) {
  Json out = {{"title", page.title}, {"lead", page.lead}, {"sections", Json::array()}};
  if (!page.setting.empty()) out["setting"] = page.setting;
  for (const Section& section : page.sections) out["sections"].push_back(section_json(section));
  out["datasets"] = Json::object();
  for (const auto& [name, sheet] : page.datasets) out["datasets"][name] = sheet_json(sheet);
  return out;
}

Page page_from_json(const Json& document) {
  if (!document.is_object()) throw_argument("report", "document", dump(document), "an object");
  Page page{.title = text_of(document, "title"),
            .lead = text_of(document, "lead"),
            .setting = text_of(document, "setting")};
  for (const Json& section : list_of(document, "sections")) {
    page.sections.push_back(section_of(section));
  }
  const auto datasets = document.find("datasets");
  if (datasets == document.end()) return page;
  for (const auto& [name, rows] : datasets->items()) page.datasets[name] = sheet_from_json(rows);
  return page;
}

}  // namespace esscher
