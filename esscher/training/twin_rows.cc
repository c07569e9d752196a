#include "esscher/training/twin_rows.h"

#include <memory>

#include "esscher/base/error.h"
#include "esscher/risk/bayes.h"

namespace esscher {
namespace {

struct Cell {
  std::string key;
  TwinRowKind what = TwinRowKind::summary;
  bool is_reference = false;
  ModelKind kind = ModelKind::softmax;
  Length length = Length::infinity();
  double eps = 0;
};

std::vector<Cell> cells_of(const CompareProblem& problem) {
  std::vector<Cell> cells{{.key = "reference", .is_reference = true}};
  for (const ModelKind kind : problem.kinds) {
    for (const Length L : problem.lengths) {
      cells.push_back(
          {.key = std::string(name(kind)) + " L=" + L.text(), .kind = kind, .length = L});
    }
  }
  for (const ModelKind kind : problem.kinds) {
    for (const double eps : problem.eps) {
      cells.push_back({.key = std::string(name(kind)) + " eps=" + to_text(eps),
                       .what = TwinRowKind::length,
                       .kind = kind,
                       .eps = eps});
    }
  }
  return cells;
}

TwinRow summary_row(const TwinTrack& twin) {
  TwinRow row;
  row.what = TwinRowKind::summary;
  row.L = twin.length;
  row.status = name(twin.status);
  row.t = twin.t_end;
  row.limiting_risk = twin.limiting_risk.value;
  row.std_error = twin.limiting_risk.std_error;
  row.engine = twin.limiting_risk.engine;
  row.heavy = twin.limiting_risk.heavy || twin.sup_gradient_gap.heavy;
  row.sup_distance = twin.sup_distance;
  row.sup_gradient_gap = twin.sup_gradient_gap.value;
  row.sup_gradient_gap_std_error = twin.sup_gradient_gap.std_error;
  row.sup_risk_gap = twin.sup_risk_gap;
  row.horizon = twin.horizon;
  return row;
}

void add_bayes(const CompareProblem& problem, TwinRow& row) {
  const TwinSetup& setup = problem.setup;
  if (!setup.task.is_regression()) return;  // the best prediction of another task is not known
  const Estimate bayes = bayes_risk(setup.task.regression(), *row.L, problem.bayes_replicates,
                                    setup.risk.stream.split(2));
  row.bayes = bayes.value;
  row.bayes_std_error = bayes.std_error;
  row.excess = *row.limiting_risk - bayes.value;
}

TwinRow path_row(const TwinTrack& twin, const TwinPoint& p) {
  TwinRow row;
  row.L = twin.length;
  row.t = p.t;
  row.risk = p.risk;
  row.reference_risk = p.reference_risk;
  row.distance = p.distance;
  row.gradient_gap = p.gradient_gap.value;
  row.gradient_gap_std_error = p.gradient_gap.std_error;
  row.heavy = p.gradient_gap.heavy;
  return row;
}

std::vector<TwinRow> rows_of(const CompareProblem& problem, const FlowResult& reference,
                             const Cell& cell) {
  if (cell.what == TwinRowKind::length) {
    const double target = reference.end().risk;
    return {length_row(length_for_risk(problem.setup, cell.kind, target, cell.eps),
                       std::string(name(cell.kind)), target)};
  }
  const Twin twin = twin_flow(problem.setup, reference, cell.kind, cell.length);
  std::vector<TwinRow> rows =
      track_rows(twin, cell.is_reference ? "infinity" : std::string(name(cell.kind)));
  TwinRow& summary = rows.back();
  add_bayes(problem, summary);
  summary.U = twin.end.U;
  summary.r = twin.end.r;
  return rows;
}

}  // namespace

std::vector<TwinRow> track_rows(const TwinTrack& twin, const std::string& model) {
  std::vector<TwinRow> rows;
  for (const TwinPoint& p : twin.path) rows.push_back(path_row(twin, p));
  rows.push_back(summary_row(twin));
  for (TwinRow& row : rows) row.model = model;
  return rows;
}

TwinRow length_row(const LengthForRisk& found, const std::string& model, double target) {
  TwinRow row;
  row.what = TwinRowKind::length;
  row.model = model;
  row.eps = found.eps;
  row.target = target;
  if (found.length != 0) row.length = found.length;
  row.length_low = found.low;
  row.length_high = found.high;
  row.status = found.length == 0 ? "not reached" : "found";
  row.risk = found.risk;
  row.risk_before = found.risk_before;
  return row;
}

Cells<TwinRow> twin_cells(const CompareProblem& problem) {
  const std::vector<Cell> cells = cells_of(problem);
  const auto reference = std::make_shared<const FlowResult>(reference_flow(problem.setup));
  Cells<TwinRow> out;
  for (const Cell& cell : cells) out.keys.push_back(cell.key);
  out.compute = [problem, cells, reference](std::size_t i) {
    return rows_of(problem, *reference, cells.at(i));
  };
  return out;
}

CompareResult assemble_twins(std::span<const TwinRow> rows) {
  CompareResult result;
  for (const TwinRow& row : rows) {
    switch (row.what) {
      case TwinRowKind::path: result.path.push_back(row); break;
      case TwinRowKind::summary: result.twins.push_back(row); break;
      case TwinRowKind::length: result.lengths.push_back(row); break;
    }
  }
  return result;
}

}  // namespace esscher
