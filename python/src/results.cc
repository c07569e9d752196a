#include "results.h"

#include <algorithm>
#include <cmath>

#include "calls.h"
#include "esscher/base/stop.h"
#include "readouts.h"

namespace esscher::python {

namespace {

py::object value_out(const NumberArray& array) {
  py::array_t<double> out(std::vector<py::ssize_t>(array.shape.begin(), array.shape.end()));
  std::copy(array.values.begin(), array.values.end(), out.mutable_data());
  return out;
}

// Numbers as numbers: an infinite one is inf, an infinite length too.
py::object value_out(const Value& value) {
  if (const auto* b = std::get_if<bool>(&value)) return py::bool_(*b);
  if (const auto* n = std::get_if<std::int64_t>(&value)) return py::int_(*n);
  if (const auto* x = std::get_if<double>(&value)) return py::float_(*x);
  if (const auto* text = std::get_if<std::string>(&value)) return py::str(*text);
  if (const auto* array = std::get_if<NumberArray>(&value)) return value_out(*array);
  if (const auto* L = std::get_if<Length>(&value)) {
    if (L->is_infinite()) return py::float_(HUGE_VAL);
    return py::int_(L->count());
  }
  return py::none();
}

template <HasColumns Row>
py::list rows_out(const std::vector<Row>& rows) {
  const std::vector<Column> columns = columns_of<Row>();
  py::list out;
  for (const Row& row : rows) {
    const Record record = record_of(row);
    py::dict entry;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (std::holds_alternative<std::monostate>(record[i]) || columns[i].name == "what") continue;
      entry[py::str(columns[i].name)] = value_out(record[i]);
    }
    out.append(std::move(entry));
  }
  return out;
}

}  // namespace

FlowResult run_flow(const FlowSetup& setup, ModelKind kind, Length length) {
  const RiskFunction at_length = risk_function(setup.task, kind, length, setup.risk);
  const RiskFunction watched = [&](const Readout& at, Readout* gradient) {
    check_stop();
    return at_length(at, gradient);
  };
  return gradient_flow(watched, setup.space, setup.theta0, setup.flow);
}

py::dict flow_out(const FlowResult& result, const Parametrisation& space) {
  const auto n = static_cast<Index>(result.path.size());
  Vector t(n), risk(n), norm(n);
  Matrix theta(n, space.size());
  for (Index i = 0; i < n; ++i) {
    const FlowPoint& point = result.path[static_cast<std::size_t>(i)];
    t(i) = point.t;
    risk(i) = point.risk;
    norm(i) = point.gradient_norm;
    theta.row(i) = point.theta.transpose();
  }
  py::dict dict;
  dict["status"] = std::string(name(result.status));
  dict["t"] = out(VectorView(t));
  dict["risk"] = out(VectorView(risk));
  dict["gradient_norm"] = out(VectorView(norm));
  dict["theta"] = out(MatrixView(theta));
  dict["end"] = out(space.readout(result.end().theta));
  dict["conserved_drift"] = result.conserved_drift;
  dict["energy_defect"] = result.energy_defect;
  dict["largest_increase"] = result.largest_increase;
  return dict;
}

CompareResult run_compare(const CompareProblem& problem) {
  const Cells<TwinRow> cells = twin_cells(problem);
  std::vector<TwinRow> rows;
  for (std::size_t i = 0; i < cells.keys.size(); ++i) {
    check_stop();
    const std::vector<TwinRow> part = cells.compute(i);
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return assemble_twins(rows);
}

py::dict compare_out(const CompareResult& result) {
  py::dict out;
  out["rows"] = rows_out(result.twins);
  out["lengths"] = rows_out(result.lengths);
  out["path"] = rows_out(result.path);
  return out;
}

py::dict run_trainer(Trainer trainer, std::int64_t steps) {
  run_interruptible([&] {
    while (trainer.step() < steps && trainer.status() == TrainStatus::running) {
      check_stop();
      trainer.run(std::min<std::int64_t>(100, steps - trainer.step()));
    }
  });
  py::list curve, heads;
  for (const LossPoint& p : trainer.curve()) {
    curve.append(py::make_tuple(p.first, p.last, p.loss, p.std_error));
  }
  for (const Readout& head : trainer.heads()) heads.append(out(head));
  py::dict result;
  result["status"] = std::string(name(trainer.status()));
  result["steps"] = trainer.step();
  result["curve"] = curve;
  result["heads"] = heads;
  result["last_loss"] = trainer.last_loss();
  return result;
}

}  // namespace esscher::python
