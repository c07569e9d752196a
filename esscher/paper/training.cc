#include "esscher/paper/training.h"

#include <Eigen/LU>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/risk/closed_form.h"

namespace esscher::paper {
namespace {

// |b A - Gamma^-1| / |Gamma^-1| of a block readout.
double limit_error(const LinearRegressionTask& task, const Readout& end, Length length) {
  const Index d = task.dim;
  const Matrix inverse = effective_covariance(task, length).inverse();
  const Matrix product = end.r(d) * end.U.topLeftCorner(d, d);
  return (product - inverse).norm() / inverse.norm();
}

Readout with_sign(Readout at, double sign) {
  at.r *= sign;
  return at;
}

}  // namespace

LinearRegressionTask regression(const Options& options) {
  return LinearRegressionTask::with_covariance(power_covariance(options.pick<Index>(2, 3, 3), 0.5));
}

double start_alpha(const LinearRegressionTask& task) { return balanced_start_bound(task) / 2; }

TwinSetup twin_setup(const Options& options, const LinearRegressionTask& task,
                     ParameterSpace space) {
  TwinSetup setup;
  setup.task = task;
  setup.space = {space, task.token_dim(), 0, 1.0};
  setup.theta0 = parameters_of(setup.space, balanced_start(task.dim, start_alpha(task)));
  setup.flow.rtol = 1e-7;
  setup.flow.atol = 1e-9;
  setup.flow.stationary = 1e-8;
  setup.flow.t_end = 1e5;
  setup.flow.max_steps = 5000;
  setup.risk.log2_nodes = options.pick(8, 10, 12);
  setup.risk.scramblings = options.pick(4, 8, 8);
  setup.risk.draws = options.pick(200, 300, 4000);
  setup.risk.stream = Stream(options.seed).split(25);
  setup.points = 40;
  return setup;
}

Row reference_row(std::string_view section, const std::string& setting, const TwinSetup& setup,
                  double sign) {
  const FlowResult flow = reference_flow(setup);
  if (flow.status == FlowStatus::failed) throw RuntimeFailure("paper: " + flow.message);
  const Readout end = setup.space.readout(flow.end().theta);
  const Estimate risk = model_risk(setup.task, with_sign(end, sign), ModelKind::softmax,
                                   Length::infinity(), setup.risk);
  return {{"section", section},
          {"kind", "reference"},
          {"setting", setting},
          {"status", name(flow.status)},
          {"t", flow.end().t},
          {"risk", risk.value},
          {"std_error", risk.std_error},
          {"flow_risk", flow.end().risk},
          {"limit_error", limit_error(setup.task, end, Length::infinity())},
          {"energy_defect", flow.energy_defect},
          {"scale_drift", flow.scale_drift}};
}

std::vector<Row> twin_rows(std::string_view section, const std::string& setting,
                           const TwinSetup& setup, ModelKind kind, Length length, double sign,
                           bool with_path) {
  const FlowResult reference = reference_flow(setup);
  const Twin twin = twin_flow(setup, reference, kind, length);
  if (twin.status == FlowStatus::failed) {
    throw RuntimeFailure("paper: the flow at L = " + length.text() + " failed");
  }
  const Readout at_end = setup.space.readout(reference.end().theta);
  const Readout change{twin.end.U - at_end.U, twin.end.r - at_end.r};
  const Estimate risk =
      sign > 0 ? twin.limiting_risk
               : model_risk(setup.task, with_sign(twin.end, sign), kind, length, setup.risk);
  std::vector<Row> rows{
      {{"section", section},
       {"kind", "twin"},
       {"setting", setting},
       {"model", name(kind)},
       {"L", number(length)},
       {"status", name(twin.status)},
       {"risk", risk.value},
       {"std_error", risk.std_error},
       {"reference_risk", reference.end().risk},
       {"distance", change.norm() / at_end.norm()},
       {"limit_error",
        limit_error(setup.task, twin.end, kind == ModelKind::linear ? length : Length::infinity())},
       {"sup_gradient_gap", twin.sup_gradient_gap}}};
  if (!with_path) return rows;
  for (const TwinPoint& p : twin.path) {
    rows.push_back({{"section", section},
                    {"kind", "path"},
                    {"setting", setting},
                    {"model", name(kind)},
                    {"L", number(length)},
                    {"t", p.t},
                    {"risk", p.risk},
                    {"reference_risk", p.reference_risk}});
  }
  return rows;
}

double falling_exponent(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double u = std::log(x[i]), v = std::log(y[i]);
    sx += u, sy += v, sxx += u * u, sxy += u * v;
  }
  return -(n * sxy - sx * sy) / (n * sxx - sx * sx);
}

}  // namespace esscher::paper
