#include "calls.h"
#include "esscher/risk/heads_risk.h"
#include "esscher/training/study.h"
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
  const ModelKind model = parse_model_kind(kind);
  const Length L = length_in("risk", length);
  const RiskOptions risk_options = risk_options_in(options);
  const TaskIn in = task_in(task);
  return out(long_call([&] {
    return in.own ? heads_risk(*in.own, heads, model, L, risk_options)
                  : heads_risk(in.regression, heads, model, L, risk_options);
  }));
}

py::object compare(const py::object& task, const py::object& U, const py::object& r,
                   const py::iterable& lengths, const py::iterable& kinds, const py::iterable& eps,
                   const std::string& space, const py::dict& options) {
  const TaskIn in = task_in(task);
  CompareStudy study;
  study.setup.task = in.regression;
  study.setup.own_task = in.own;
  study.setup.space.space = parse_parameter_space(space);
  study.setup.space.token_dim = study.setup.space.key_dim = in.token_dim();
  study.setup.theta0 = parameters_of(study.setup.space, readout_in(U, r));
  study.setup.risk = risk_options_in(options);
  study.setup.flow = flow_options_in(options);
  study.kinds.clear();
  for (const py::handle kind : kinds) {
    study.kinds.push_back(parse_model_kind(py::cast<std::string>(kind)));
  }
  for (const py::handle length : lengths) study.lengths.push_back(length_in("compare", length));
  for (const py::handle e : eps) study.eps.push_back(py::cast<double>(e));
  return out(long_call([&] { return run_compare(study); }));
}

}  // namespace

void bind_models(py::module_& m) {
  m.def("risk", &risk);
  m.def("compare", &compare);
}

}  // namespace esscher::python
