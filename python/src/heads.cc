#include <pybind11/stl.h>

#include <optional>

#include "arrays.h"
#include "calls.h"
#include "esscher/heads/diagnose.h"
#include "esscher/heads/load.h"
#include "esscher/report/page_heads.h"
#include "outlet.h"
#include "rows.h"

namespace esscher::python {
namespace {

HeadOptions head_options(const py::dict& given) {
  HeadOptions options;
  options.components = given["components"].cast<std::vector<Index>>();
  options.most_queries = given["most_queries"].cast<Index>();
  options.queries = given["queries"].cast<std::vector<Index>>();
  options.tolerance = given["tolerance"].cast<double>();
  options.seed = given["seed"].cast<std::uint64_t>();
  options.windows = given["windows"].cast<std::vector<Index>>();
  options.sinks = given["sinks"].cast<Index>();
  return options;
}

py::list diagnose_all(const std::vector<Head>& heads, const py::dict& given) {
  const Cells<HeadDiagnosis> cells = diagnosis_cells(heads, head_options(given));
  Outlet outlet(given["where"]);
  return list_of(long_call(
      [&] {
        std::vector<HeadDiagnosis> rows = outlet.rows(cells);
        outlet.keep([&] { return heads_page(rows); });
        outlet.close();
        return rows;
      },
      outlet));
}

}  // namespace

void bind_heads(py::module_& m) {
  m.def("heads_of_arrays",
        [](const std::vector<py::object>& Q, const std::vector<py::object>& K,
           const std::vector<py::object>& V, double scale, bool causal, const py::dict& options) {
          std::vector<Head> heads;
          for (std::size_t h = 0; h < Q.size(); ++h) {
            const std::string name = Q.size() == 1 ? "head" : "head." + std::to_string(h);
            heads.push_back(make_head(name, matrix_in(name, "Q", Q[h]).view(),
                                      matrix_in(name, "K", K[h]).view(),
                                      matrix_in(name, "V", V[h]).view(), scale, causal));
          }
          return diagnose_all(heads, options);
        });
  m.def("heads_of_file", [](const std::string& path, std::optional<double> scale,
                            std::optional<bool> causal, const py::dict& options) {
    return diagnose_all(load_heads(path, {.scale = scale, .causal = causal}), options);
  });
}

}  // namespace esscher::python
