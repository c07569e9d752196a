#include <pybind11/stl.h>

#include "arrays.h"
#include "esscher/base/stop.h"
#include "esscher/report/report.h"
#include "outlet.h"
#include "parts.h"
#include "rows.h"

namespace esscher::python {
namespace {

// The cells of a Python function into the run of `where`. compute(i) gives the rows of cell i as
// the text of the store (json/rows.h) and "", or None and what went wrong. Gives back
// [{"cell", column..},..] of all finished cells, or None if another shard has cells left.
py::object sweep(const py::object& where, std::vector<std::string> keys, const py::object& columns,
                 const py::object& compute) {
  TextCells cells{.keys = std::move(keys), .columns = {}, .compute = {}};
  for (const Json& column : json_in(columns)) {
    cells.columns.push_back(column_from_json("sweep", column));
  }
  cells.compute = [&](std::size_t i) -> TextCells::Rows {
    const py::gil_scoped_acquire acquire;
    const auto [text, failure] = py::cast<std::pair<py::object, std::string>>(compute(i));
    if (text.is_none()) throw RuntimeFailure("sweep: at " + cells.keys[i] + ": " + failure);
    return {.text = py::cast<std::string>(text), .engine = {}};
  };
  Outlet outlet(where);
  const RecordTable table = long_call(
      [&] {
        RecordTable found;
        outlet.keep_document("columns", [&] {
          Json list = Json::array();
          for (const Column& column : cells.columns) list.push_back(column_json(column));
          return list;
        });
        if (outlet.fill(cells)) {
          const Run& run = *outlet.run();
          found = run.keyed_table();
          if (run.is_writer()) write_report(run, run.directory() / "report.html");
        }
        outlet.close();
        return found;
      },
      outlet);
  if (table.columns.empty()) return py::none();
  return list_of(table);
}

// A flag for calls on threads of Python: Ctrl-C reaches the main thread alone.
struct StopToken {
  StopFlag flag{false};
};

}  // namespace

void bind_sweep(py::module_& m) {
  m.def("sweep", &sweep);
  py::class_<StopToken>(m, "StopToken")
      .def(py::init<>())
      .def("set", [](StopToken& token) { token.flag = true; })
      .def("call", [](const StopToken& token, const py::function& f) {
        const StopScope scope(&token.flag);
        return f();
      });
}

}  // namespace esscher::python
