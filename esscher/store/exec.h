// The cells of a study (base/cells.h) into a run: on threads, on several ranks (store/ranks.h), or
// as one shard of several machines. Each cell is committed as soon as it ends, rows come back in the
// order of the keys whatever the order of completion, and a cell that is done is never computed
// again. Results must depend on the cell only (seed and key); then a run is the same bytes for any
// number of threads and ranks, interrupted or not.
//
//   Run run = Run::create_or_resume(directory, info);
//   const CellRows<PointRow> all = run_cells(&run, study.cells());
//
// The library neither prints nor ends the process: shard, progress and stop are options, and the
// answer or the exception says how the work ended.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "esscher/base/cells.h"
#include "esscher/base/error.h"
#include "esscher/base/stop.h"
#include "esscher/json/rows.h"
#include "esscher/store/run.h"

namespace esscher {

// One part of the cells, for machines that share nothing: those with position % count == index.
struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;

  // "2/4" is {1, 4}; "" is everything. Throws ArgumentError on another text.
  static Shard parse(const std::string& text);
};

// How far a run is. Cells of other shards count in `total` only.
struct CellProgress {
  std::int64_t resumed = 0;  // cells that were done before this call
  std::int64_t done = 0;
  std::int64_t total = 0;
  std::string failed;  // the key of the cell whose computation threw, else ""
};

struct ExecOptions {
  Shard shard = {};
  // Called by the thread that called run_cells: once before the first cell, after each commit, and
  // when a cell has failed. On ranks other than the first it is never called.
  std::function<void(const CellProgress&)> progress = {};
  // Set from outside (a signal handler, another thread): no new cell begins, finished cells are
  // committed, `abandon` is called, and when it returns (or is empty) running cells are asked to end
  // (base/stop.h) and run_cells throws Interrupted. Null means the flag of the calling thread.
  const StopFlag* stop = nullptr;
  // For a program that ends at once instead of waiting for running cells, which may take hours. The
  // run is complete on disk up to the cells that are finished; the message is that of Interrupted.
  std::function<void(const std::string& message)> abandon = {};
};

// The stop flag was set. The finished cells are kept, and the same call resumes the run.
class Interrupted : public RuntimeFailure {
 public:
  using RuntimeFailure::RuntimeFailure;
};

// Cells whose rows are text already (rows_text of json/rows.h), as the driver sees them.
struct TextCells {
  struct Rows {
    std::string text;
    std::string engine;  // the column "engine" of the first row, for the provenance
  };
  std::vector<std::string> keys;  // all different
  std::vector<Column> columns;
  std::function<Rows(std::size_t i)> compute;
};

// Computes what is missing. True if all of `cells` are then in the run, false after one shard of
// several. An exception of compute stops the run after the running cells have ended and been
// committed, and is rethrown.
bool run_text_cells(Run& run, const TextCells& cells, const ExecOptions& options = {});

// The column "engine" of the first row, or "".
std::string engine_of(const RecordTable& rows);

template <HasColumns Row>
TextCells text_cells(const Cells<Row>& cells) {
  return {.keys = cells.keys,
          .columns = columns_of<Row>(),
          .compute = [compute = cells.compute](std::size_t i) {
            const std::vector<Row> rows = compute(i);
            const RecordTable table = table_of(std::span<const Row>(rows));
            return TextCells::Rows{.text = rows_text(table), .engine = engine_of(table)};
          }};
}

// The rows of all cells in the order of the keys. After one shard of several `complete` is false
// and there are no rows.
template <HasColumns Row>
struct CellRows {
  std::vector<Row> rows;
  bool complete = true;
};

// The one driver of every grid: into the run, or on the threads of this process if `run` is null,
// where no option applies but the stop flag.
template <HasColumns Row>
CellRows<Row> run_cells(Run* run, const Cells<Row>& cells, const ExecOptions& options = {}) {
  if (run == nullptr) {
    const StopScope scope(options.stop != nullptr ? options.stop : current_stop_flag());
    return {.rows = compute_here(cells), .complete = true};
  }
  if (!run_text_cells(*run, text_cells(cells), options)) return {.rows = {}, .complete = false};
  return {.rows = run->rows<Row>(cells.keys), .complete = true};
}

}  // namespace esscher
