#include "esscher/training/layer_twins.h"

#include <memory>

#include "esscher/base/error.h"

namespace esscher {
namespace {

struct Cell {
  std::string key;
  Length length = Length::infinity();
  double eps = 0;  // of a search for a length
};

std::vector<Cell> cells_of(const LayerCompareProblem& problem) {
  const std::string model = problem.flow.model.start.kinds_text();
  std::vector<Cell> cells{{.key = "reference"}};
  for (const Length L : problem.lengths) {
    cells.push_back({.key = model + " L=" + L.text(), .length = L});
  }
  for (const double eps : problem.eps) {
    cells.push_back({.key = model + " eps=" + to_text(eps), .eps = eps});
  }
  return cells;
}

LengthForRisk length_of(const LayerCompareProblem& problem, double target, double eps) {
  FlowOptions options = problem.flow.flow;
  options.times = {0.0};
  return length_for_risk(
      [&](std::int64_t L) {
        return gradient_flow(twin_field(problem, L), problem.flow.model.theta0(), options);
      },
      target, eps);
}

void add_layer(const LayerCompareProblem& problem, const Layer& end, TwinRow& row) {
  const ContextTask& task = problem.flow.model.task;
  const ReferenceRisks reference = reference_risks(task, *row.L, problem.flow.risk);
  row.task = name(task.type);
  row.loss = named_loss(task.loss);
  row.bayes = reference.bayes.value;
  row.bayes_std_error = reference.bayes.std_error;
  if (reference.bayes_is_bound()) row.bound = true;
  row.excess = *row.limiting_risk - reference.bayes.value;
  row.affine = reference.affine.value;
  row.U = end.stacked_U();
  row.V = end.stacked_V();
  row.W = end.W;
}

std::vector<TwinRow> rows_of(const LayerCompareProblem& problem, const FlowResult& reference,
                             const Cell& cell) {
  const LayerFlowProblem& flow = problem.flow;
  const std::string model = flow.model.start.kinds_text();
  if (cell.eps > 0) {
    const double target = reference.end().risk;
    return {length_row(length_of(problem, target, cell.eps), model, target)};
  }
  TwinTrack twin =
      twin_track(twin_field(problem, cell.length), flow.flow, reference,
                 GradientGap(flow.model, cell.length, flow.risk), problem.horizon_distance);
  const Layer end = flow.model.map().layer(twin.theta);
  twin.length = cell.length;
  twin.limiting_risk = layer_risk(flow.model.task, end, cell.length, flow.risk);
  std::vector<TwinRow> rows = track_rows(twin, cell.key == "reference" ? "infinity" : model);
  add_layer(problem, end, rows.back());
  return rows;
}

}  // namespace

FlowField twin_field(const LayerCompareProblem& problem, Length length) {
  LayerFlowProblem own = problem.flow;
  own.length = length;
  own.risk = shared_nodes(own.model.task, own.model.start, length, own.risk);
  return layer_field(own);
}

Cells<TwinRow> twin_cells(const LayerCompareProblem& problem) {
  const std::vector<Cell> cells = cells_of(problem);
  const auto reference = std::make_shared<const FlowResult>(
      reference_flow(twin_field(problem, Length::infinity()), problem.flow.model.theta0(),
                     problem.flow.flow, problem.points));
  Cells<TwinRow> out;
  for (const Cell& cell : cells) out.keys.push_back(cell.key);
  out.compute = [problem, cells, reference](std::size_t i) {
    return rows_of(problem, *reference, cells.at(i));
  };
  return out;
}

}  // namespace esscher
