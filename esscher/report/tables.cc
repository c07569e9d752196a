#include "esscher/report/tables.h"

#include <algorithm>
#include <optional>
#include <span>

#include "esscher/base/error.h"
#include "esscher/base/suggest.h"
#include "esscher/concentration/study.h"
#include "esscher/report/page_json.h"

namespace esscher {
namespace {

// One point of the averaged curve.
struct CurvePoint {
  Metric metric = Metric::output;
  std::int64_t L = 0;
  double D = 0, std_error = 0, low = 0, high = 0;
  std::optional<double> relative_rms;
  double asymptotic = 0, ess = 0, bias2 = 0;
  Engine engine = Engine::exact;
  bool heavy = false;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("metric", row.metric, "", "what is compared with its limit");
    column("L", row.L, "tokens", "length of the prompt");
    column("D", row.D, "", "mean-square error over queries and prompts");
    column("std_error", row.std_error, "", "its standard error; 0 where nothing was sampled");
    column("low", row.low, "", "lower end of the 95 % interval of D");
    column("high", row.high, "", "upper end of the 95 % interval of D");
    column("relative_rms", row.relative_rms, "", "root of D as a fraction of the limit");
    column("asymptotic", row.asymptotic, "", "constant / L; inf in the slow regime");
    column("ess", row.ess, "tokens", "effective sample size");
    column("bias2", row.bias2, "", "squared bias; nan from one prompt per query");
    column("engine", row.engine, "", "how prompts were averaged");
    column("heavy", row.heavy, "", "whether the interval cannot be trusted");
  }
};

struct ExponentPoint {
  Metric metric = Metric::output;
  double L = 0, exponent = 0, std_error = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("metric", row.metric, "", "what is compared with its limit");
    column("L", row.L, "tokens", "geometric mean of two neighbouring lengths");
    column("exponent", row.exponent, "", "exponent of the decay between them");
    column("std_error", row.std_error, "", "its standard error; 0 where nothing was sampled");
  }
};

// Rows of a document as rows of the store: numbers that are not finite are said beside them.
std::string stored_text(const Json& rows) {
  Json out = Json::array();
  for (Json row : rows) {
    if (const auto special = row.find("not_finite"); special != row.end()) {
      const Json values = *special;
      row.erase("not_finite");
      for (const auto& [key, value] : values.items()) row[key] = value;
    }
    for (auto item = row.begin(); item != row.end();) {
      item = item->is_null() ? row.erase(item) : std::next(item);
    }
    out.push_back(std::move(row));
  }
  return dump(out);
}

template <HasColumns Row>
std::vector<Row> document_rows(const Run& run, const Json& rows) {
  const std::string where = run.directory().string() + ": result";
  return rows_of<Row>(where, parse_rows(where, columns_of<Row>(), stored_text(rows)));
}

template <HasColumns Row>
RecordTable table_from(const std::vector<Row>& rows) {
  return table_of(std::span<const Row>(rows));
}

RunTable curve_table(const Run& run, const Json& result) {
  std::vector<CurvePoint> points;
  for (const StudyRow& r : document_rows<StudyRow>(run, result.at("rows"))) {
    CurvePoint p{.metric = r.metric,
                 .L = r.L,
                 .D = r.value,
                 .std_error = r.std_error,
                 .low = r.ci.lo,
                 .high = r.ci.hi,
                 .relative_rms = {},
                 .asymptotic = r.asymptotic,
                 .ess = r.ess,
                 .bias2 = r.bias2,
                 .engine = r.engine,
                 .heavy = r.heavy};
    const Json limits = result.value("limits", Json::object());
    const auto limit = limits.find(std::string(name(r.metric)));
    if (limit != limits.end() && limit->at("mean_square").is_number()) {
      const double rms = LimitSize{limit->at("mean_square").get<double>()}.relative_rms(r.value);
      if (std::isfinite(rms)) p.relative_rms = rms;
    }
    points.push_back(p);
  }
  return {"curve", "D(L) averaged over queries, with its 95 % interval", table_from(points)};
}

RunTable exponent_table(const Run& run, const Json& result) {
  std::vector<ExponentPoint> points;
  for (const Json& fit : result.at("fits")) {
    const Metric metric = parse_enum<Metric>(fit.at("metric").get<std::string>());
    for (const LocalExponent& e : document_rows<LocalExponent>(run, fit.at("local"))) {
      points.push_back(
          {.metric = metric, .L = e.L, .exponent = e.exponent, .std_error = e.std_error});
    }
  }
  return {"exponents", "exponent of the decay between neighbouring lengths", table_from(points)};
}

// Some columns of a table, and the rows that `keep` takes.
template <class Keep>
RecordTable part_of(const RecordTable& table, const std::vector<std::string>& names,
                    const Keep& keep) {
  RecordTable out;
  std::vector<std::size_t> places;
  for (const std::string& name : names) {
    const auto at = std::ranges::find(table.columns, name, &Column::name);
    if (at == table.columns.end()) continue;
    places.push_back(static_cast<std::size_t>(at - table.columns.begin()));
    out.columns.push_back(*at);
  }
  for (const Record& record : table.rows) {
    if (!keep(record)) continue;
    Record& row = out.rows.emplace_back();
    for (const std::size_t at : places) row.push_back(record[at]);
  }
  return out;
}

void add_training(const Run& run, std::vector<RunTable>& out) {
  const RecordTable all = run.table();
  const auto what = std::ranges::find(all.columns, "what", &Column::name);
  if (what == all.columns.end()) return;
  const auto at = static_cast<std::size_t>(what - all.columns.begin());
  const auto is = [at](const char* kind) {
    return [at, kind](const Record& r) { return std::get<std::string>(r[at]) == kind; };
  };
  out.push_back({"loss", "the loss along the training",
                 part_of(all, {"step", "loss", "std_error", "low", "high"}, is("loss"))});
  out.push_back({"checkpoints", "the parameters along the training",
                 part_of(all, {"step", "status", "U", "r"}, is("checkpoint"))});
}

RunTable heads_table(const Run& run) {
  const RecordTable all = run.table();
  std::vector<std::string> names;
  for (const Column& column : all.columns) {
    if (column.type != ColumnType::array && column.type != ColumnType::table) {
      names.push_back(column.name);
    }
  }
  return {"heads", "the diagnosis of each head, one row each",
          part_of(all, names, [](const Record&) { return true; })};
}

ColumnType type_of(const Sheet& sheet, std::size_t c) {
  std::optional<ColumnType> type;
  for (const Record& row : sheet.rows) {
    const Value& value = row[c];
    if (std::holds_alternative<std::monostate>(value)) continue;
    const ColumnType one = std::holds_alternative<bool>(value)           ? ColumnType::boolean
                           : std::holds_alternative<std::int64_t>(value) ? ColumnType::integer
                           : std::holds_alternative<double>(value)       ? ColumnType::real
                                                                         : ColumnType::text;
    if (!type || *type == one) {
      type = one;
    } else {
      const bool numbers = (*type == ColumnType::real || *type == ColumnType::integer) &&
                           (one == ColumnType::real || one == ColumnType::integer);
      type = numbers ? ColumnType::real : ColumnType::text;
    }
  }
  return type.value_or(ColumnType::real);
}

RecordTable table_of_sheet(const Sheet& sheet) {
  RecordTable out;
  for (std::size_t c = 0; c < sheet.columns.size(); ++c) {
    out.columns.push_back({.name = sheet.columns[c],
                           .type = type_of(sheet, c),
                           .unit = "",
                           .meaning = "",
                           .optional = true,
                           .parts = {}});
  }
  out.rows = sheet.rows;
  for (Record& row : out.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const auto* n = std::get_if<std::int64_t>(&row[c]);
      if (n != nullptr && out.columns[c].type == ColumnType::real) {
        row[c] = static_cast<double>(*n);
      }
    }
  }
  return out;
}

}  // namespace

std::vector<RunTable> run_tables(const Run& run) {
  std::vector<RunTable> out;
  if (const auto result = run.document("result");
      result && run.info().verb == "concentration" && result->contains("rows")) {
    out.push_back(curve_table(run, *result));
    out.push_back(exponent_table(run, *result));
  }
  if (run.info().verb == "icl train") add_training(run, out);
  if (run.info().verb == "heads") out.push_back(heads_table(run));
  out.push_back({"cells", "all rows as they are stored, cell by cell", run.keyed_table()});
  if (const auto report = run.document("report")) {
    const Json datasets = report->value("datasets", Json::object());
    for (const auto& [name, rows] : datasets.items()) {
      out.push_back({"figure:" + name, "numbers behind a figure of the report",
                     table_of_sheet(sheet_from_json(rows))});
    }
  }
  return out;
}

RunTable run_table(const Run& run, std::string_view name) {
  std::vector<std::string> known;
  for (RunTable& table : run_tables(run)) {
    if (table.name == name) return std::move(table);
    known.push_back(table.name);
  }
  throw ArgumentError("export: " + run.directory().string() + " has no table " + std::string(name) +
                      ", " + suggest(name, known));
}

}  // namespace esscher
