// Score schedules: rows along a schedule, and the factors that keep something constant.
#include "esscher/scaling/scaling.h"

#include <pybind11/stl.h>

#include <cmath>

#include "arrays.h"
#include "calls.h"
#include "esscher/json/scaling.h"
#include "esscher/report/page_scaling.h"
#include "esscher/scaling/keep.h"
#include "outlet.h"
#include "parts.h"
#include "python_measure.h"
#include "rows.h"

namespace esscher::python {
namespace {

namespace py = pybind11;

// Gaussian scores of deviation tau, or (measure, attention, z).
ScoreModel scores_in(const py::object& scores) {
  if (PyNumber_Check(scores.ptr()) != 0 && !py::hasattr(scores, "__len__")) {
    return ScoreModel::gaussian(scores.cast<double>());
  }
  if (!py::isinstance<py::tuple>(scores) || py::len(scores) != 3) {
    throw_argument("scaling", "scores",
                   "a " + std::string(py::str(py::type::of(scores).attr("__name__"))),
                   "the deviation of Gaussian scores, or (measure, attention, z)");
  }
  const auto parts = py::cast<py::tuple>(scores);
  const VectorIn z = vector_in("scaling", "z", parts[2]);
  return ScoreModel::layer(
      {measure_in("scaling", parts[0]), py::cast<const Attention&>(parts[1]), z.view()});
}

Schedule schedule_in(const std::string& kind, std::optional<double> c, std::optional<double> train,
                     const std::vector<std::pair<double, double>>& table,
                     const std::string& formula) {
  ScheduleOptions options{.kind = parse_enum<ScheduleKind>(kind),
                          .c = c,
                          .train = train,
                          .table = {},
                          .formula = formula};
  for (const auto& [n, factor] : table) options.table.push_back({n, factor});
  return Schedule(options);
}

py::dict scaling(const py::object& scores, const std::vector<double>& lengths,
                 const std::string& kind, std::optional<double> c, std::optional<double> train,
                 const std::vector<std::pair<double, double>>& table, const std::string& formula,
                 double gap, int draws, std::uint64_t seed, const py::object& where) {
  const ScoreModel model = scores_in(scores);
  const Schedule schedule = schedule_in(kind, c, train, table, formula);
  const ScalingOptions options{.gap = gap, .draws = draws, .seed = seed};
  Outlet outlet(where);
  std::vector<ScalingEvent> events;
  RetrievalLength retrieval;
  const auto page = [&](const std::vector<ScalingRow>& rows) {
    return scaling_page(model, rows, events, gap);
  };
  const auto document = [&](const std::vector<ScalingRow>& rows) {
    return to_json(rows, events, {retrieval});
  };
  const auto rows = long_call(
      [&] {
        events = scaling_events(model, schedule, gap);
        retrieval = retrieval_length(model, schedule, gap);
        return kept_rows(scaling_cells(model, {schedule}, lengths, options), outlet, document,
                         page);
      },
      outlet);
  py::dict out;
  out["rows"] = list_of(rows);
  out["events"] = list_of(events);
  out["retrieval_length"] = retrieval.L;
  out["schedule"] = schedule.name();
  return out;
}

py::dict keep(const py::object& scores, const std::string& quantity, double train,
              const std::vector<double>& lengths, double gap) {
  const ScoreModel model = scores_in(scores);
  const Kept kept = parse_enum<Kept>(quantity);
  const auto factors = long_call([&] { return kept_factors(model, kept, gap, train, lengths); });
  py::dict out;
  out["rows"] = list_of(factors);
  out["families"] = list_of(nearest_families(factors, train));
  return out;
}

}  // namespace

void bind_scaling(py::module_& m) {
  m.def("scaling", &scaling);
  m.def("kept_factors", &keep);
}

}  // namespace esscher::python
