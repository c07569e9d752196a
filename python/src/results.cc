#include "results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "calls.h"
#include "esscher/base/stop.h"
#include "esscher/json/training.h"
#include "esscher/report/page_flow.h"
#include "esscher/report/page_training.h"
#include "esscher/report/page_twins.h"
#include "esscher/report/setting.h"
#include "esscher/store/chain_run.h"
#include "readouts.h"

namespace esscher::python {

namespace {

// What a report of a run that Python made says about running it again.
constexpr const char* kRerun = "the same call in Python";

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

// Losses as risks, halves of squared errors, whatever the optimizer saw.
py::dict training_out(const Trainer& trainer) {
  const double scale = trainer.config().half_loss ? 1.0 : 0.5;
  py::list curve, heads;
  for (const LossPoint& p : trainer.curve()) {
    curve.append(py::make_tuple(p.first, p.last, scale * p.loss, scale * p.std_error));
  }
  for (const Readout& head : trainer.heads()) heads.append(out(head));
  py::dict result;
  result["status"] =
      trainer.status() == TrainStatus::running ? "finished" : std::string(name(trainer.status()));
  result["steps"] = trainer.step();
  result["curve"] = curve;
  result["heads"] = heads;
  result["layer"] = trainer.config().layer ? py::object(layer_out(trainer.layer())) : py::none();
  result["last_loss"] = last_risk(trainer);
  return result;
}

FlowResult flow_here(const FlowField& field, const Vector& theta0, const FlowOptions& options,
                     Outlet& outlet) {
  FlowField watched = field;
  watched.risk = [&](const Vector& theta, Vector& gradient) {
    check_stop();
    outlet.add_done(1);
    return field.risk(theta, gradient);
  };
  outlet.add_total(options.max_steps);
  return gradient_flow(watched, theta0, options);
}

FlowResult flow_here(const FlowProblem& problem, Outlet& outlet) {
  const FlowSetup& setup = problem.setup;
  const RiskFunction risk = risk_function(setup.task, problem.kind, problem.length, setup.risk);
  return flow_here(flow_field(risk, setup.space), setup.theta0, setup.flow, outlet);
}

FlowResult flow_here(const LayerFlowProblem& problem, Outlet& outlet) {
  return flow_here(layer_field(problem), problem.model.theta0(), problem.flow, outlet);
}

py::object end_of(const FlowProblem& problem, const Vector& theta) {
  return out(problem.setup.space.readout(theta));
}

py::object end_of(const LayerFlowProblem& problem, const Vector& theta) {
  return layer_out(problem.model.map().layer(theta));
}

const AnyTask& task_of(const FlowProblem& problem) { return problem.setup.task; }
const ContextTask& task_of(const LayerFlowProblem& problem) { return problem.model.task; }
const AnyTask& task_of(const CompareProblem& problem) { return problem.setup.task; }
const ContextTask& task_of(const LayerCompareProblem& problem) { return task_of(problem.flow); }

// {"t", "risk", "gradient_norm"} of a path whose points have these members.
template <class Points>
py::dict path_out(const Points& points) {
  const auto n = static_cast<Index>(points.size());
  Vector t(n), risk(n), norm(n);
  for (Index i = 0; i < n; ++i) {
    const auto& point = points[static_cast<std::size_t>(i)];
    t(i) = point.t;
    risk(i) = point.risk;
    norm(i) = point.gradient_norm;
  }
  py::dict dict;
  dict["t"] = out(VectorView(t));
  dict["risk"] = out(VectorView(risk));
  dict["gradient_norm"] = out(VectorView(norm));
  return dict;
}

py::dict flow_out(const FlowResult& result) {
  Matrix theta(static_cast<Index>(result.path.size()), result.end().theta.size());
  for (Index i = 0; i < theta.rows(); ++i) {
    theta.row(i) = result.path[static_cast<std::size_t>(i)].theta.transpose();
  }
  py::dict dict = path_out(result.path);
  dict["status"] = std::string(name(result.status));
  dict["theta"] = out(MatrixView(theta));
  dict["conserved_drift"] = result.conserved_drift;
  dict["energy_defect"] = result.energy_defect;
  dict["largest_increase"] = result.largest_increase;
  return dict;
}

// The same of a run, whose rows have matrices and not theta.
py::dict flow_out(const FlowRecord& record) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  py::dict dict = path_out(record.path);
  dict["status"] = std::string(name(record.summary.status.value()));
  dict["theta"] = py::none();
  const FlowRow& end = record.summary;
  dict["end"] = end.is_layer() ? py::object(layer_out(end.layer(end))) : out(end.readout());
  dict["conserved_drift"] = record.summary.conserved_drift.value_or(kUnknown);
  dict["energy_defect"] = record.summary.energy_defect.value_or(kUnknown);
  dict["largest_increase"] = record.summary.largest_increase.value_or(kUnknown);
  return dict;
}

template <class Problem>
py::dict flow_of(const Problem& problem, Outlet& outlet) {
  if (outlet.directory().empty()) {
    const FlowResult result = long_call([&] { return flow_here(problem, outlet); }, outlet);
    py::dict dict = flow_out(result);
    dict["end"] = end_of(problem, result.end().theta);
    return dict;
  }
  return flow_out(long_call(
      [&] {
        FlowRecord record = assemble_flow(outlet.rows(flow_cells(problem)));
        outlet.keep_document("model", [&] { return flow_document(record); });
        outlet.keep(
            [&] { return with_setting(setting_of(task_of(problem)), flow_page(record, kRerun)); });
        outlet.close();
        return record;
      },
      outlet));
}

template <class Problem>
CompareResult compare_of(const Problem& problem, Outlet& outlet) {
  CompareResult result = assemble_twins(outlet.rows(twin_cells(problem)));
  outlet.keep(
      [&] { return with_setting(setting_of(task_of(problem)), twins_page(result, kRerun)); });
  outlet.close();
  return result;
}

}  // namespace

py::dict run_flow(const FlowProblem& problem, Outlet& outlet) { return flow_of(problem, outlet); }
py::dict run_flow(const LayerFlowProblem& problem, Outlet& outlet) {
  return flow_of(problem, outlet);
}

CompareResult run_compare(const CompareProblem& problem, Outlet& outlet) {
  return compare_of(problem, outlet);
}
CompareResult run_compare(const LayerCompareProblem& problem, Outlet& outlet) {
  return compare_of(problem, outlet);
}

py::dict compare_out(const CompareResult& result) {
  py::dict out;
  out["rows"] = rows_out(result.twins);
  out["lengths"] = rows_out(result.lengths);
  out["path"] = rows_out(result.path);
  return out;
}

py::dict run_training(const TrainPlan& plan, Outlet& outlet) {
  Chain chain(plan);
  // Without a run nobody needs checkpoints, only a look at Ctrl-C now and then.
  const auto here = [&] {
    Trainer trainer(plan.config);
    while (trainer.step() < plan.steps && trainer.status() == TrainStatus::running) {
      check_stop();
      outlet.add_done(trainer.run(std::min<std::int64_t>(100, plan.steps - trainer.step())));
    }
    return trainer;
  };
  const auto kept = [&] {
    std::int64_t told = 0;
    const std::vector<TrainRow> rows = run_chain(chain, outlet.run(), [&](const Chain& now) {
      check_stop();
      outlet.add_done(now.trainer().step() - std::exchange(told, now.trainer().step()));
    });
    const TrainResult result = assemble_training(chain.trainer(), rows, plan.config.risk);
    outlet.keep_document("model", [&] { return train_document(result).at("parameters"); });
    outlet.keep([&] {
      return with_setting(training_setting(plan.config),
                          training_page(result, risks_beside(result, plan.config), kRerun));
    });
    outlet.close();
    return chain.trainer();
  };
  outlet.add_total(plan.steps);
  const Trainer trainer =
      long_call([&] { return outlet.directory().empty() ? here() : kept(); }, outlet);
  return training_out(trainer);
}

}  // namespace esscher::python
