#include "calls.h"
#include "esscher/report/chart_page.h"
#include "parts.h"

namespace esscher::python {

void bind_charts(pybind11::module_& m) {
  m.def(
      "chart_page", [](const std::string& spec) { return chart_page(spec); },
      pybind11::arg("spec"));
}

}  // namespace esscher::python
