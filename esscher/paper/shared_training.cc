#include "esscher/paper/shared_training.h"

#include <cmath>

#include "esscher/base/cholesky.h"
#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/paper/verdicts.h"
#include "esscher/risk/closed_form.h"
#include "esscher/training/start.h"

namespace esscher::paper {

double limit_error(const LinearRegressionTask& task, const Readout& end, Length length) {
  const Index d = task.dim;
  const Matrix inverse =
      solve_positive(effective_covariance(task, length), Matrix::Identity(d, d)).value();
  const Matrix product = end.r(d) * end.U.topLeftCorner(d, d);
  return (product - inverse).norm() / inverse.norm();
}

LinearRegressionTask regression(const Options& options) {
  return LinearRegressionTask::with_covariance(power_covariance(options.pick<Index>(2, 3, 3), 0.5));
}

double start_alpha(const LinearRegressionTask& task) { return balanced_start_bound(task) / 2; }

TwinSetup twin_setup(const Options& options, const LinearRegressionTask& task) {
  TwinSetup setup;
  setup.task = task;
  setup.space = {.space = ParameterSpace::block,
                 .token_dim = task.token_dim(),
                 .key_dim = 0,
                 .score_scale = 1.0};
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

TrainingRow reference_row(const std::string& setting, const TwinSetup& setup) {
  const FlowResult flow = reference_flow(setup);
  if (flow.status == FlowStatus::failed) throw RuntimeFailure("paper: " + flow.message);
  const Readout end = setup.space.readout(flow.end().theta);
  const Estimate risk =
      esscher::risk(setup.task, end, ModelKind::softmax, Length::infinity(), setup.risk);
  return {.kind = TrainingKind::reference,
          .setting = setting,
          .status = flow.status,
          .t = flow.end().t,
          .risk = risk.value,
          .std_error = risk.std_error,
          .flow_risk = flow.end().risk,
          .limit_error = limit_error(setup.task.regression(), end, Length::infinity()),
          .energy_defect = flow.energy_defect,
          .scale_drift = flow.scale_drift};
}

TwinRows twin_rows(const std::string& setting, const TwinSetup& setup, ModelKind kind,
                   Length length, const std::optional<RiskOptions>& test) {
  const FlowResult reference = reference_flow(setup);
  const Twin twin = twin_flow(setup, reference, kind, length);
  if (twin.status == FlowStatus::failed) {
    throw RuntimeFailure("paper: the flow at L = " + length.text() + " failed");
  }
  const Estimate limiting =
      test ? risk(setup.task, twin.end, kind, length, *test) : twin.limiting_risk;
  const Readout at_end = setup.space.readout(reference.end().theta);
  const Readout change{twin.end.U - at_end.U, twin.end.r - at_end.r};
  const Length limit = kind == ModelKind::linear ? length : Length::infinity();
  TwinRows rows{.end = {.kind = TrainingKind::twin,
                        .setting = setting,
                        .model = kind,
                        .L = length,
                        .status = twin.status,
                        .risk = limiting.value,
                        .std_error = limiting.std_error,
                        .reference_risk = reference.end().risk,
                        .distance = change.norm() / at_end.norm(),
                        .limit_error = limit_error(setup.task.regression(), twin.end, limit),
                        .sup_gradient_gap = twin.sup_gradient_gap.value},
                .path = {}};
  for (const TwinPoint& p : twin.path) {
    rows.path.push_back({.kind = TrainingKind::path,
                         .setting = setting,
                         .model = kind,
                         .L = length,
                         .t = p.t,
                         .risk = p.risk,
                         .reference_risk = p.reference_risk});
  }
  return rows;
}

void add_ends(Checks& checks, const std::string& which, std::span<const EndPoint> at,
              Source source) {
  std::vector<std::int64_t> lengths;
  std::vector<double> values;
  for (const EndPoint& e : at) {
    checks.figures.push_back({.what = which + " at L = " + brief(e.L),
                              .value = e.excess,
                              .error = e.error,
                              .expected = e.expected,
                              .expected_error = e.expected_error,
                              .source = source,
                              .tolerance = kFlowTolerance});
    lengths.push_back(e.L);
    values.push_back(e.excess);
  }
  must_fall(checks, which, lengths, values);
  if (at.size() < 2) return;
  const EndPoint &a = at[at.size() - 2], &b = at.back();
  const auto x1 = static_cast<double>(a.L), x2 = static_cast<double>(b.L);
  const Exponent rate = exponent_between(x1, a.excess, a.error, x2, b.excess, b.error);
  const Exponent known =
      exponent_between(x1, a.expected, a.expected_error, x2, b.expected, b.expected_error);
  Judged judged{
      .what = "the exponent of " + which + " from L = " + brief(a.L) + " to L = " + brief(b.L),
      .value = rate.value,
      .error = rate.error,
      .expected = known.value,
      .expected_error = known.error,
      .source = source,
      .tolerance = kFlowTolerance};
  checks.figures.push_back(judged);
  if (a.L < kRateFrom) return;
  judged.what += ", as predicted";
  judged.expected = 1;
  judged.expected_error = 0;
  judged.source = Source::exponent;
  judged.tolerance = kRateTolerance;
  checks.figures.push_back(std::move(judged));
}

double falling_exponent(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size());
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double u = std::log(x[i]), v = std::log(y[i]);
    sx += u, sy += v, sxx += u * u, sxy += u * v;
  }
  return -(n * sxy - sx * sy) / (n * sxx - sx * sx);
}

}  // namespace esscher::paper
