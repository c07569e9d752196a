#include "results.h"

#include <algorithm>

#include "calls.h"
#include "esscher/base/stop.h"
#include "readouts.h"

namespace esscher::python {

FlowResult run_flow(const RiskFunction& risk, const Parametrisation& space, const Vector& theta0,
                    const FlowOptions& options) {
  const RiskFunction watched = [&](const Readout& at, Readout* gradient) {
    check_stop();
    return risk(at, gradient);
  };
  return gradient_flow(watched, space, theta0, options);
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

Json run_compare(const CompareStudy& study) {
  std::vector<Json> rows;
  for (std::size_t i = 0; i < compare_keys(study).size(); ++i) {
    check_stop();
    for (Json& row : compare_rows(study, i)) rows.push_back(std::move(row));
  }
  return compare_document(rows);
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
