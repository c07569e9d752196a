#include "tasks.h"

#include <memory>

#include "esscher/base/error.h"
#include "estimates.h"
#include "python_measure.h"

namespace esscher::python {
namespace {

Task own_task(const py::object& object) {
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

}  // namespace

AnyTask task_in(const py::object& object) {
  if (py::isinstance<LinearRegressionTask>(object)) {
    return py::cast<const LinearRegressionTask&>(object);
  }
  return own_task(object);
}

Parametrisation space_in(const std::string& name, Index token_dim) {
  return {.space = parse_enum<ParameterSpace>(name), .token_dim = token_dim, .key_dim = token_dim};
}

RiskOptions risk_options_in(const py::dict& given) {
  RiskOptions options;
  if (given.contains("draws")) options.draws = py::cast<std::int64_t>(given["draws"]);
  if (given.contains("engine")) {
    options.engine = parse_enum<Engine>(py::cast<std::string>(given["engine"]));
  }
  if (given.contains("stream")) options.stream = py::cast<Stream>(given["stream"]);
  return options;
}

FlowOptions flow_options_in(const py::dict& given) {
  FlowOptions options;
  for (const auto& [key, value] : given) {
    const auto name = py::cast<std::string>(key);
    if (name == "rtol") options.rtol = py::cast<double>(value);
    if (name == "atol") options.atol = py::cast<double>(value);
    if (name == "t_end") options.t_end = py::cast<double>(value);
    if (name == "stationary") options.stationary = py::cast<double>(value);
    if (name == "times") {
      const VectorIn times = vector_in("flow", "times", value);
      options.times.assign(times.owner.data(), times.owner.data() + times.owner.size());
    }
  }
  return options;
}

}  // namespace esscher::python
