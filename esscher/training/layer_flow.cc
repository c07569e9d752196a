#include "esscher/training/layer_flow.h"

#include <string>
#include <vector>

namespace esscher {
namespace {

FlowRow path_row(const FlowPoint& point, const Layer& at) {
  FlowRow row;
  row.t = point.t;
  row.risk = point.risk;
  row.gradient_norm = point.gradient_norm;
  row.U = at.stacked_U();
  row.V = at.stacked_V();
  row.W = at.W;
  return row;
}

FlowRow summary_row(const LayerFlowProblem& problem, const FlowResult& flow, FlowRow row) {
  const ContextTask& task = problem.model.task;
  const Layer end = problem.model.map().layer(flow.end().theta);
  add_end(flow, layer_risk(task, end, problem.length, problem.risk), row);
  row.task = name(task.type);
  row.loss = named_loss(task.loss);
  row.model = end.kinds_text();
  row.family = problem.model.family;
  row.L = problem.length;
  const ReferenceRisks reference = reference_risks(task, problem.length, problem.risk);
  row.bayes = reference.bayes.value;
  row.bayes_std_error = reference.bayes.std_error;
  if (reference.bayes_is_bound()) row.bound = true;
  row.affine = reference.affine.value;
  row.linear = reference.linear.value;
  if (problem.model.factors.is_factored()) row.parametrisation = problem.model.factors.space;
  if (problem.model.map().conserved(flow.end().theta).size() > 0) {
    row.conserved_drift = flow.conserved_drift;
  }
  return row;
}

std::vector<FlowRow> flow_rows(const LayerFlowProblem& problem) {
  const FlowResult flow = layer_flow(problem);
  const LayerMap map = problem.model.map();
  std::vector<FlowRow> rows;
  for (const FlowPoint& p : flow.path) rows.push_back(path_row(p, map.layer(p.theta)));
  rows.push_back(summary_row(problem, flow, rows.back()));
  return rows;
}

}  // namespace

FlowField layer_field(const LayerFlowProblem& problem) {
  const LayerMap map = problem.model.map();
  return {.risk = layer_objective(problem.model.task, map, problem.length, problem.risk),
          .conserved = [map](const VectorView& theta) { return map.conserved(theta); }};
}

FlowResult layer_flow(const LayerFlowProblem& problem) {
  return gradient_flow(layer_field(problem), problem.model.theta0(), problem.flow);
}

Cells<FlowRow> flow_cells(const LayerFlowProblem& problem) {
  return {{"flow"}, [problem](std::size_t) { return flow_rows(problem); }};
}

}  // namespace esscher
