#include "calls.h"
#include "esscher/base/error.h"
#include "esscher/risk/risk.h"
#include "esscher/training/twin_rows.h"
#include "estimates.h"
#include "readouts.h"
#include "results.h"
#include "tasks.h"

namespace esscher::python {
namespace {

py::tuple risk(const py::object& task, const py::iterable& pairs, const std::string& kind,
               const py::object& length, const py::dict& options) {
  std::vector<Readout> heads;
  for (const py::handle pair : pairs) {
    if (!py::isinstance<py::tuple>(pair) || py::len(pair) != 2) {
      throw_argument("risk", "at", py::cast<std::string>(py::repr(pair)),
                     "a Readout or a list of them");
    }
    const auto [U, r] = py::cast<std::pair<py::object, py::object>>(pair);
    heads.push_back(readout_in(U, r));
  }
  const auto model = parse_enum<ModelKind>(kind);
  const Length L = length_in("risk", length);
  const RiskOptions risk_options = risk_options_in(options);
  const AnyTask in = task_in(task);
  return out(long_call([&] { return esscher::risk(in, heads, model, L, risk_options); }));
}

py::dict compare(const py::object& task, const py::object& U, const py::object& r,
                 const py::iterable& lengths, const py::iterable& kinds, const py::iterable& eps,
                 const std::string& space, const py::dict& options, const py::object& where) {
  CompareProblem problem;
  TwinSetup& setup = problem.setup;
  setup.task = task_in(task);
  setup.space = space_in(space, setup.task.token_dim());
  setup.theta0 = parameters_of(setup.space, readout_in(U, r));
  setup.risk = risk_options_in(options);
  setup.flow = flow_options_in(options);
  problem.kinds.clear();
  for (const py::handle kind : kinds) {
    problem.kinds.push_back(parse_enum<ModelKind>(py::cast<std::string>(kind)));
  }
  for (const py::handle length : lengths) problem.lengths.push_back(length_in("compare", length));
  for (const py::handle e : eps) problem.eps.push_back(py::cast<double>(e));
  Outlet outlet(where);
  return compare_out(long_call([&] { return run_compare(problem, outlet); }, outlet));
}

}  // namespace

void bind_models(py::module_& m) {
  m.def("risk", &risk);
  m.def("compare", &compare);
}

}  // namespace esscher::python
