#include <memory>

#include "arrays.h"
#include "calls.h"
#include "esscher/base/error.h"
#include "esscher/icl/model_risk.h"
#include "esscher/icl/study.h"
#include "estimates.h"
#include "python_measure.h"
#include "readouts.h"
#include "results.h"

namespace esscher::python {
namespace {

// A task of Python: token_dim and draw(stream) -> (law of tokens, query [D], target).
Task task_in(const py::object& object) {
  if (py::isinstance<LinearRegressionTask>(object)) {
    return regression_task(py::cast<const LinearRegressionTask&>(object));
  }
  const std::string type = py::cast<std::string>(py::type::of(object).attr("__name__"));
  for (const char* member : {"token_dim", "draw"}) {
    if (py::hasattr(object, member)) continue;
    throw ArgumentError("task: " + type + " has no " + member +
                        "; a task needs token_dim and draw(stream) -> (law, query, target)");
  }
  const std::shared_ptr<const py::object> held(new py::object(object), [](const py::object* p) {
    const py::gil_scoped_acquire acquire;
    delete p;
  });
  const auto D = py::cast<Index>(object.attr("token_dim"));
  return {D, type, [held, type, D](const Stream& stream) -> ContextDraw {
            const py::gil_scoped_acquire acquire;
            const py::object drawn = held->attr("draw")(py::cast(stream));
            if (!py::isinstance<py::tuple>(drawn) || py::len(drawn) != 3) {
              throw ArgumentError(type + ".draw gave " + std::string(py::str(py::type::of(drawn))) +
                                  ", expected (law, query, target)");
            }
            const auto parts = py::cast<py::tuple>(drawn);
            const std::string where = type + ".draw";
            const AnyMeasure law = measure_in(where.c_str(), parts[0]);
            const Vector query = vector_in(where, "query", parts[1]).view();
            check_dimension(where, "law", law.dim(), D);
            check_dimension(where, "query", query.size(), D);
            return {law, query, py::cast<double>(parts[2])};
          }};
}

RiskOptions risk_options(std::int64_t draws, const Stream& stream) {
  RiskOptions options;
  options.draws = draws;
  options.stream = stream;
  return options;
}

py::tuple risk(const py::object& task, const py::object& U, const py::object& r,
               const std::string& kind, const py::object& length, std::int64_t draws,
               const Stream& stream) {
  const Readout at = readout_in(U, r);
  const ModelKind model = parse_model_kind(kind);
  const Length L = length_in("risk", length);
  if (py::isinstance<LinearRegressionTask>(task)) {
    const auto& regression = py::cast<const LinearRegressionTask&>(task);
    return out(long_call(
        [&] { return model_risk(regression, at, model, L, risk_options(draws, stream)); }));
  }
  const Task general = task_in(task);
  return out(long_call([&] { return simulated_risk(general, at, model, L, draws, stream); }));
}

py::object compare(const LinearRegressionTask& task, const py::object& U, const py::object& r,
                   const py::iterable& lengths, const py::iterable& kinds, const py::iterable& eps,
                   const std::string& space, const Stream& stream) {
  CompareStudy study;
  study.setup.task = task;
  study.setup.space.space = parse_parameter_space(space);
  study.setup.space.token_dim = study.setup.space.key_dim = task.token_dim();
  study.setup.theta0 = parameters_of(study.setup.space, readout_in(U, r));
  study.setup.risk.stream = stream;
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
