// A report page as data: numbers in sheets, verdicts, prose and charts apart. What makes a page
// (report/page_*.cc, paper/) computes numbers first, lets verdict functions judge them, and puts
// words and charts around them last; report.h renders it and computes nothing.
//
//   Page page{.title = "Concentration"};
//   Sheet curve{.columns = {"L", "value"}};
//   curve.add(10, 0.5);
//   page.datasets["curve"] = std::move(curve);
//   Section section{.id = "curve", .title = "How far from the limit"};
//   section.verdict = judge(..);
//   section.figures.push_back({.id = "curve", .chart = CurveChart{.data = "curve", ..}, .caption = ".."});
//   page.sections.push_back(std::move(section));
//
// Text is plain: `code` in backticks, x^{2} and x_{2} raised and lowered, 1e6 as a power of ten; a
// blank line starts a paragraph; anything else is escaped.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "esscher/base/columns.h"
#include "esscher/report/chart.h"

namespace esscher {

// holds: the statement was tested and holds. holds_fitted: it holds with constants that were fitted
// to the same kind of data. fails: a test failed. info: nothing was claimed.
enum class VerdictStatus { holds, holds_fitted, fails, info };

constexpr auto enum_names(VerdictStatus) {
  return EnumNames<VerdictStatus, 4>{"verdict",
                                     {{{VerdictStatus::holds, "holds"},
                                       {VerdictStatus::holds_fitted, "holds-fitted"},
                                       {VerdictStatus::fails, "fails"},
                                       {VerdictStatus::info, "info"}}}};
}

// A judgement with its reason. Verdict functions take numbers and return this.
struct Verdict {
  VerdictStatus status = VerdictStatus::info;
  std::string text;

  // The status with its text, or "fails" with the trouble if there is any.
  static Verdict unless(const std::string& trouble, VerdictStatus status, std::string text);
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// One cell of a sheet: absent, a truth, a number, a text or a length.
inline Value cell(Value value) { return value; }
inline Value cell(const char* text) { return std::string(text); }
inline Value cell(std::string_view text) { return std::string(text); }
inline Value cell(std::string text) { return text; }
inline Value cell(bool x) { return x; }
inline Value cell(double x) { return x; }
template <std::integral T>
Value cell(T n) {
  return static_cast<std::int64_t>(n);
}
template <NamedEnum E>
Value cell(E e) {
  return std::string(name(e));
}
template <class T>
Value cell(const std::optional<T>& x) {
  return x ? cell(*x) : Value();
}

// Rows of plain values under named columns: what a chart draws and what a table shows.
struct Sheet {
  std::vector<std::string> columns;
  std::vector<Record> rows;  // as wide as the columns

  // One row. Throws DimensionError unless there is one value per column.
  template <class... Cells>
  void add(Cells&&... cells) {
    add_row({cell(std::forward<Cells>(cells))...});
  }
  void add_row(Record row);
};

// The scalar columns of typed rows as a sheet.
Sheet sheet_of(const RecordTable& rows);

struct PageTable {
  std::string title;
  Sheet sheet;
};

struct Figure {
  std::string id;
  Chart chart;  // draws datasets of the page by name
  std::string caption;
  bool read = false;  // add_readings (report/reading.h) appends what the numbers say
};

struct Section {
  std::string id;
  std::string title;
  std::optional<Verdict> verdict = {};
  std::string statement = {};
  std::vector<std::string> hypotheses = {};
  std::string text = {};
  std::vector<std::string> formulas = {};  // MathML
  std::vector<Figure> figures = {};
  std::vector<PageTable> tables = {};
  std::string rerun = {};  // the command that makes this section
};

struct Page {
  std::string title;
  std::string lead = {};     // the answer, computed from the numbers
  std::string setting = {};  // law, dimension, layer, task, engine, in a sentence or two
  std::vector<Section> sections = {};
  std::map<std::string, Sheet> datasets = {};
};

}  // namespace esscher
