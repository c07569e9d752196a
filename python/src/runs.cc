#include <filesystem>

#include "arrays.h"
#include "calls.h"
#include "esscher/report/report.h"
#include "esscher/store/export.h"
#include "esscher/store/run.h"
#include "rows.h"

namespace esscher::python {
namespace {

namespace fs = std::filesystem;

py::list rows_of(const Run& run) {
  return list_of(without_gil([&] { return run.table(); }));
}

}  // namespace

void bind_runs(py::module_& m) {
  py::class_<Run>(m, "Run")
      .def(py::init([](const std::string& directory) { return Run::open(directory); }))
      .def_property_readonly("directory", [](const Run& run) { return run.directory().string(); })
      .def_property_readonly("verb", [](const Run& run) { return run.info().verb; })
      .def_property_readonly("seed", [](const Run& run) { return run.info().seed; })
      .def_property_readonly("config", [](const Run& run) { return run.info().config_toml; })
      .def("status",
           [](const Run& run) {
             const RunStatus status = run.status();
             return py::make_tuple(status.done, status.total);
           })
      .def("rows", &rows_of)
      .def("provenance", [](const Run& run) { return out(run.provenance()); })
      .def("document",
           [](const Run& run, const std::string& name) -> py::object {
             const auto document = run.document(name);
             return document ? out(*document) : py::none();
           })
      .def("report_html",
           [](const Run& run) {
             return without_gil([&] { return report_html(run, page_of(run)); });
           })
      .def("figures", [](const Run& run) { return out(report_figures(page_of(run))); })
      .def("csv", [](const Run& run) { return without_gil([&] { return export_csv(run); }); })
      .def("json", [](const Run& run) { return without_gil([&] { return export_json(run); }); });
}

}  // namespace esscher::python
