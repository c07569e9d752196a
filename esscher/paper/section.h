// One statement of a paper (papers.h), without its row type. Each statement is a file of this folder
// with two functions:
//
//   Cells<Row> cells(const Options&)                               what to compute
//   SectionReport report(const Options&, std::span<const Row>)     a section from the rows alone
//
// so that a resumed or merged run reads the same. The rows come in the order of the keys. Inside
// the file the order is: setting, rows and cells, numbers, verdict, page. The verdict is a function
// of numbers (verdicts.h) and is tested without a page.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "esscher/base/cells.h"
#include "esscher/paper/judged.h"
#include "esscher/report/page.h"

namespace esscher::paper {

// tiny takes seconds and is for tests; quick takes about a minute on two cores; full is the
// authors' whole training experiment.
enum class Size { tiny, quick, full };

constexpr auto enum_names(Size) {
  return EnumNames<Size, 3>{"size",
                            {{{Size::tiny, "tiny"}, {Size::quick, "quick"}, {Size::full, "full"}}}};
}

struct Options {
  Size size = Size::quick;
  std::uint64_t seed = 0;

  template <class T>
  [[nodiscard]] T pick(T tiny, T quick, T full) const {
    return size == Size::tiny ? tiny : size == Size::quick ? quick : full;
  }
};

// A hypothesis of a statement as it stands here: in words, with the numbers behind them.
struct StatedHypothesis {
  std::string text;
  std::vector<std::pair<std::string, double>> values = {};
  std::optional<bool> holds = true;  // nothing where it is a choice and not a condition
};

// A section of the page with the sheets that its figures draw, its hypotheses, and what its verdict
// judged. Id, title, the hypotheses of the section and rerun are set by the statement and by the run.
struct SectionReport {
  Section section;
  std::map<std::string, Sheet> datasets = {};
  std::vector<StatedHypothesis> hypotheses = {};
  Checks checks = {};
};

// Cells whose rows are records under Statement::columns.
struct RecordCells {
  std::vector<std::string> keys;
  std::function<RecordTable(std::size_t i)> compute;
};

struct Statement {
  std::string_view id;
  std::string_view title;
  std::vector<Column> columns;  // "section", then those of the row type
  std::function<RecordCells(const Options& options)> cells;
  // `where` names the rows in the FileError that is thrown if one does not fit its row type.
  std::function<SectionReport(const Options& options, std::string_view where,
                              const RecordTable& rows)>
      report;
};

// "section" in front of the columns, and its value in front of each record.
std::vector<Column> with_section(std::vector<Column> columns);
RecordTable with_section(std::string_view id, RecordTable rows);

// report(), where an absent value that its kind of row must have is a FileError.
SectionReport complete_rows(std::string_view where, std::string_view id,
                            const std::function<SectionReport()>& report);

template <HasColumns Row>
Statement make_statement(std::string_view id, std::string_view title,
                         Cells<Row> (*cells)(const Options&),
                         SectionReport (*report)(const Options&, std::span<const Row>)) {
  return {
      .id = id,
      .title = title,
      .columns = with_section(columns_of<Row>()),
      .cells =
          [id, cells](const Options& options) {
            Cells<Row> typed = cells(options);
            return RecordCells{.keys = std::move(typed.keys),
                               .compute = [id, compute = std::move(typed.compute)](std::size_t i) {
                                 const std::vector<Row> rows = compute(i);
                                 return with_section(id, table_of(std::span<const Row>(rows)));
                               }};
          },
      .report =
          [id, title, report](const Options& options, std::string_view where,
                              const RecordTable& rows) {
            const std::vector<Row> typed = rows_of<Row>(where, rows);
            SectionReport out = complete_rows(where, id, [&] { return report(options, typed); });
            out.section.id = id;
            out.section.title = title;
            for (const StatedHypothesis& h : out.hypotheses) {
              out.section.hypotheses.push_back(h.text);
            }
            return out;
          }};
}

// Cells one by one, each with the function that computes it.
template <HasColumns Row>
class CellList {
 public:
  void add(std::string key, std::function<std::vector<Row>()> compute) {
    keys_.push_back(std::move(key));
    computes_.push_back(std::move(compute));
  }
  [[nodiscard]] Cells<Row> cells() && {
    return {.keys = std::move(keys_), .compute = [computes = std::move(computes_)](std::size_t i) {
              return computes.at(i)();
            }};
  }

 private:
  std::vector<std::string> keys_;
  std::vector<std::function<std::vector<Row>()>> computes_;
};

// The larger of two errors, where NaN is larger than any number: a worst case must not lose it.
inline bool is_worse(double x, double than) { return !std::isnan(than) && !(x <= than); }
inline double worse(double x, double y) { return is_worse(y, x) ? y : x; }

// The verdict for this trouble, which is not empty.
inline Verdict fails(const std::string& trouble) {
  return Verdict::unless(trouble, VerdictStatus::fails, {});
}

}  // namespace esscher::paper
