#include <pybind11/stl.h>

#include "arrays.h"
#include "calls.h"
#include "esscher/risk/node_error.h"
#include "esscher/risk/risk.h"
#include "esscher/risk/several_heads.h"
#include "esscher/risk/task_gradient.h"
#include "parts.h"
#include "readouts.h"
#include "tasks.h"

namespace esscher::python {
namespace {

// H, k = (M2c/tau^2 - H)/tau^2 and their derivatives in tau^2, at tau2 [n]: rows (H, k, dH, dk).
py::array node_functions(const NodeTables& tables, const py::object& tau2) {
  const VectorIn in = vector_in("universal", "tau2", tau2);
  const VectorView t = in.view();
  const Matrix rows = long_call([&] {
    Matrix found(t.size(), 4);
    if (t.size() == 0) return found;
    const NodeFunctionTable table = tables.up_to(std::sqrt(std::max(t.maxCoeff(), 0.0)));
    for (Index i = 0; i < t.size(); ++i) {
      const NodeFunctions u = table.at_tau2(t(i));
      found.row(i) << u.H, u.k, u.dH, u.dk;
    }
    return found;
  });
  return out(MatrixView(rows));
}

std::vector<Readout> readouts_in(const py::iterable& pairs) {
  std::vector<Readout> heads;
  for (const py::handle pair : pairs) {
    const auto [U, r] = py::cast<std::pair<py::object, py::object>>(pair);
    heads.push_back(readout_in(U, r));
  }
  return heads;
}

// (noise_variance, task_variance, prompt_cov, query_cov), or None where there is no formula.
py::object by_task(const py::object& task, const std::string& kind, const py::object& length,
                   const py::dict& options, const py::object& U, const py::object& r) {
  const AnyTask in = task_in(task);
  const Readout at = readout_in(U, r);
  const Length L = length_in("risk", length);
  const auto model = parse_enum<ModelKind>(kind);
  const RiskOptions given = risk_options_in(options);
  if (choose_risk(in, 1, model, L, given.engine).method == RiskMethod::draws) return py::none();
  const TaskGradient g = long_call([&] { return task_gradient(in, at, model, L, given); });
  return py::make_tuple(g.noise_variance, g.task_variance, out(MatrixView(g.prompt_cov)),
                        out(MatrixView(g.query_cov)));
}

}  // namespace

void bind_gradients(py::module_& m) {
  m.def("task_gradient", &by_task);
  py::class_<NodeTables>(m, "NodeTables").def(py::init<std::int64_t>()).def("at", &node_functions);
  py::class_<RiskFunction>(m, "RiskFunction")
      .def(py::init([](const py::object& task, const std::string& kind, const py::object& length,
                       const py::dict& options, const py::iterable& near) {
        const std::vector<Readout> heads = readouts_in(near);
        const AnyTask in = task_in(task);
        const Length L = length_in("risk", length);
        const auto model = parse_enum<ModelKind>(kind);
        const RiskOptions given = risk_options_in(options);
        return long_call([&] { return risk_function(in, model, L, given, heads); });
      }))
      .def("__call__", [](const RiskFunction& f, const py::object& U, const py::object& r) {
        const Readout at = readout_in(U, r);
        Readout gradient = Readout::zero(at.dim());
        const double value = long_call([&] { return f(at, &gradient); });
        return py::make_tuple(value, out(gradient));
      });
  py::class_<HeadsRiskFunction>(m, "HeadsRiskFunction")
      .def(py::init([](const py::object& task, const std::string& kind, const py::object& length,
                       const py::dict& options) {
        return heads_risk_function(task_in(task), parse_enum<ModelKind>(kind),
                                   length_in("risk", length), risk_options_in(options));
      }))
      .def("__call__", [](const HeadsRiskFunction& f, const py::iterable& pairs) {
        const std::vector<Readout> heads = readouts_in(pairs);
        std::vector<Readout> gradient;
        const double value = long_call([&] { return f(heads, &gradient); });
        py::list slopes;
        for (const Readout& slope : gradient) slopes.append(out(slope));
        return py::make_tuple(value, slopes);
      });
}

}  // namespace esscher::python
