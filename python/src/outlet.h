// Where the work of a call goes and who hears of it: the keyword arguments out, shard and progress.
//
//   Outlet outlet(given);                                    // with the GIL held
//   const Result result = long_call([&] {
//     Result found = assemble(outlet.rows(cells));           // here, or into the run of out=
//     outlet.keep([&] { return page(found); });
//     return found;
//   }, outlet);
//
// `given` is None or a dictionary of Python (esscher/outlets.py):
//   {"out": DIR or None, "verb", "config": TOML, "seed", "shard": "1/2" or "", "progress": f or None,
//    "ranks": the MPI ranks of the script (esscher/ranks.py) or None}
// Of several ranks only the first writes files; all of them get the result.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calls.h"
#include "esscher/report/page.h"
#include "esscher/store/exec.h"
#include "ranks.h"

namespace esscher::python {

// How far the work is; written by the threads that work, read by the one that shows it.
struct Meter {
  std::atomic<std::int64_t> done{0};
  std::atomic<std::int64_t> total{0};
};

class Outlet {
 public:
  explicit Outlet(const pybind11::object& given);

  // Without the GIL, by the thread that works.
  Run* run();  // opened or resumed at the first call; null without out=
  void add_total(std::int64_t n) { meter_.total += n; }
  void add_done(std::int64_t n) { meter_.done += n; }
  template <HasColumns Row>
  std::vector<Row> rows(const Cells<Row>& cells);
  // True if all cells are in the run then.
  bool fill(const TextCells& cells);
  // The report of a run that is complete.
  void keep(const std::function<Page()>& page);
  void keep_document(const char* name, const std::function<Json()>& document);
  void close();

  // With the GIL held: calls progress(done, total) if something has changed.
  void tell();
  [[nodiscard]] bool is_watched() const { return !progress_.is_none(); }
  // What the run says it is, "" without out=.
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  [[nodiscard]] ExecOptions options();

  std::string directory_, shard_;
  RunInfo info_;
  pybind11::object progress_ = pybind11::none();
  std::unique_ptr<PythonRanks> ranks_;  // null when alone
  Meter meter_;
  std::pair<std::int64_t, std::int64_t> told_{-1, -1};
  std::optional<Run> run_;
};

template <HasColumns Row>
std::vector<Row> Outlet::rows(const Cells<Row>& cells) {
  if (run() != nullptr) {
    CellRows<Row> found = run_cells(run(), cells, options());
    if (!found.complete) {
      throw RuntimeFailure("shard " + shard_ + " of " + directory_ +
                           " is done; the other shards are not, so there is no result yet");
    }
    return std::move(found.rows);
  }
  add_total(static_cast<std::int64_t>(cells.keys.size()));
  const Cells<Row> counted{cells.keys, [&](std::size_t i) {
                             std::vector<Row> rows = cells.compute(i);
                             add_done(1);
                             return rows;
                           }};
  return compute_here(counted);
}

// The rows of a study; a run of out= also gets document(rows) as "result", and the report page(rows).
template <HasColumns Row, class Document, class MakePage>
std::vector<Row> kept_rows(const Cells<Row>& cells, Outlet& outlet, const Document& document,
                           const MakePage& page) {
  std::vector<Row> rows = outlet.rows(cells);
  outlet.keep_document("result", [&] { return document(rows); });
  outlet.keep([&] { return page(rows); });
  outlet.close();
  return rows;
}

// long_call that tells how far it is.
template <class Work>
auto long_call(const Work& work, Outlet& outlet) {
  using Result = decltype(work());
  std::optional<Result> result;
  const std::function<void()> tick = [&outlet] { outlet.tell(); };
  run_interruptible([&] { result.emplace(work()); },
                    outlet.is_watched() ? tick : std::function<void()>());
  if (outlet.is_watched()) outlet.tell();
  return std::move(*result);
}

}  // namespace esscher::python
