#include "esscher/training/flow_rows.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/risk/bayes.h"
#include "esscher/risk/closed_form.h"
#include "esscher/training/start.h"

namespace esscher {
namespace {

constexpr std::int64_t kBayesReplicates = 1000;

double distance(const Readout& a, const Readout& b) {
  return std::hypot((a.U - b.U).norm(), (a.r - b.r).norm());
}

// Where the flow must end if the formula applies: Gaussian features, infinite length or linear
// attention, balanced start.
std::optional<Readout> known_limit(const FlowProblem& problem) {
  const FlowSetup& setup = problem.setup;
  const bool formula = setup.task.has_formulas() && problem.alpha > 0 &&
                       (problem.length.is_infinite() || problem.kind == ModelKind::linear) &&
                       !setup.space.is_factored();
  if (!formula) return std::nullopt;
  try {
    return block_optimum(setup.task.regression(), problem.length,
                         setup.space.scale_balance(setup.theta0));
  } catch (const ArgumentError&) {
    return std::nullopt;  // singular covariance
  }
}

// What the flow keeps: K K' - Q Q' and V V' - O O', and |U|^2 - |r|^2 where predictions are
// bilinear in (U, r); nothing where neither holds.
std::optional<double> conserved_drift(const FlowProblem& problem, const FlowResult& flow) {
  const FlowSetup& setup = problem.setup;
  const bool bilinear = problem.kind == ModelKind::linear ||
                        (problem.length.is_infinite() && setup.task.has_formulas());
  if (bilinear) return std::max(flow.conserved_drift, flow.scale_drift);
  if (setup.space.conserved(setup.theta0).size() > 0) return flow.conserved_drift;
  return std::nullopt;
}

FlowRow path_row(const FlowPoint& point, const Readout& at, const std::optional<Readout>& limit) {
  FlowRow row;
  row.t = point.t;
  row.risk = point.risk;
  row.gradient_norm = point.gradient_norm;
  row.U = at.U;
  row.r = at.r;
  if (limit) row.distance = distance(at, *limit);
  return row;
}

void add_regression(const FlowProblem& problem, FlowRow& row) {
  if (!problem.setup.task.is_regression()) return;
  const LinearRegressionTask& task = problem.setup.task.regression();
  const Estimate bayes =
      bayes_risk(task, problem.length, kBayesReplicates, problem.setup.risk.stream.split(2));
  row.features = task.features;
  row.bayes = bayes.value;
  row.bayes_std_error = bayes.std_error;
  row.alpha_bound = balanced_start_bound(task);
}

FlowRow summary_row(const FlowProblem& problem, const FlowResult& flow,
                    const std::optional<Readout>& limit) {
  const FlowSetup& setup = problem.setup;
  const Readout end = setup.space.readout(flow.end().theta);
  const Estimate found = risk(setup.task, end, problem.kind, problem.length, setup.risk);
  FlowRow row = path_row(flow.end(), end, std::nullopt);
  add_end(flow, found, row);
  row.model = name(problem.kind);
  row.L = problem.length;
  row.parametrisation = setup.space.space;
  row.conserved_drift = conserved_drift(problem, flow);
  if (problem.alpha > 0) row.alpha = problem.alpha;
  if (limit) {
    row.limit_distance = distance(end, *limit);
    row.limit_b = limit->r(limit->dim() - 1);
  }
  add_regression(problem, row);
  return row;
}

std::vector<FlowRow> flow_rows(const FlowProblem& problem) {
  const FlowResult flow = gradient_flow(problem.setup, problem.kind, problem.length);
  const std::optional<Readout> limit = known_limit(problem);
  std::vector<FlowRow> rows;
  for (const FlowPoint& p : flow.path) {
    rows.push_back(path_row(p, problem.setup.space.readout(p.theta), limit));
  }
  rows.push_back(summary_row(problem, flow, limit));
  return rows;
}

}  // namespace

void add_end(const FlowResult& flow, const Estimate& found, FlowRow& row) {
  row.what = FlowRowKind::summary;
  row.status = flow.status;
  row.message = flow.message;
  row.risk = found.value;
  row.risk_std_error = found.std_error;
  row.engine = found.engine;
  row.heavy = found.heavy;
  row.energy_defect = flow.energy_defect;
  row.largest_increase = flow.largest_increase;
  row.steps = flow.steps;
  row.evaluations = flow.evaluations;
}

Cells<FlowRow> flow_cells(const FlowProblem& problem) {
  return {{"flow"}, [problem](std::size_t) { return flow_rows(problem); }};
}

FlowRecord assemble_flow(std::span<const FlowRow> rows) {
  if (rows.empty() || rows.back().what != FlowRowKind::summary) {
    throw RuntimeFailure("assemble_flow: the run has no finished flow");
  }
  return {{rows.begin(), rows.end() - 1}, rows.back()};
}

}  // namespace esscher
