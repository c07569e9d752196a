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
  options.heavy = given["heavy"].cast<Index>();
  options.budgets = given["budgets"].cast<std::vector<Index>>();
  options.gap = given["gap"].cast<Index>();
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

std::optional<double> number_in(const py::dict& rules, const char* key) {
  return rules[key].cast<std::optional<double>>();
}

// What the caller says that the model did before its softmax (heads/rules.h).
Head with_rules(Head head, const py::dict& rules) {
  if (const auto sliding = number_in(rules, "sliding")) {
    head.rules.window = static_cast<Index>(*sliding);
  }
  head.rules.softcap = number_in(rules, "softcap").value_or(0);
  head.rules.sink = number_in(rules, "sink");
  if (!rules["mask"].is_none()) {
    const auto mask =
        std::make_shared<const Matrix>(matrix_in(head.name, "mask", rules["mask"]).view());
    check_dimension("head " + head.name, "mask (columns)", mask->cols(), head.n);
    if (mask->rows() != 1) {
      check_dimension("head " + head.name, "mask (rows)", mask->rows(), head.n_queries);
    }
    head.rules.bias = [mask](Index query) {
      return Vector(mask->row(mask->rows() == 1 ? 0 : query).transpose());
    };
  }
  check_head(head);
  const auto slope = number_in(rules, "alibi");
  return slope ? with_alibi(std::move(head), *slope) : head;
}

}  // namespace

void bind_heads(py::module_& m) {
  m.def("heads_of_arrays", [](const std::vector<py::object>& Q, const std::vector<py::object>& K,
                              const std::vector<py::object>& V, double scale, bool causal,
                              const py::dict& rules, const py::dict& options) {
    std::vector<Head> heads;
    for (std::size_t h = 0; h < Q.size(); ++h) {
      const std::string name = Q.size() == 1 ? "head" : "head." + std::to_string(h);
      heads.push_back(with_rules(
          make_head(name, matrix_in(name, "Q", Q[h]).view(), matrix_in(name, "K", K[h]).view(),
                    matrix_in(name, "V", V[h]).view(), scale, causal),
          rules));
    }
    return diagnose_all(heads, options);
  });
  m.def("heads_of_file",
        [](const std::string& path, std::optional<double> scale, std::optional<bool> causal,
           const py::dict& rules, const py::dict& options) {
          HeadFileOptions file{.scale = scale, .causal = causal};
          if (const auto layout = rules["layout"].cast<std::optional<std::string>>()) {
            file.layout = parse_enum<HeadLayout>(*layout);
          }
          file.sliding = number_in(rules, "sliding");
          file.softcap = number_in(rules, "softcap");
          file.sink = number_in(rules, "sink");
          file.alibi = number_in(rules, "alibi");
          return diagnose_all(load_heads(path, file), options);
        });
}

}  // namespace esscher::python
