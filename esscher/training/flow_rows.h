// A gradient flow as rows: its path, and a summary of where it ended and what it kept. One cell.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "esscher/base/cells.h"
#include "esscher/task/loss.h"
#include "esscher/training/flow.h"
#include "esscher/training/layer_family.h"

namespace esscher {

struct FlowProblem {
  FlowSetup setup;
  ModelKind kind = ModelKind::softmax;
  Length length = Length::infinity();
  double alpha = 0;  // of a balanced start, 0 for another one
};

enum class FlowRowKind { path, summary };

constexpr auto enum_names(FlowRowKind) {
  return EnumNames<FlowRowKind, 2>{
      "kind of row", {{{FlowRowKind::path, "path"}, {FlowRowKind::summary, "summary"}}}};
}

struct FlowRow {
  FlowRowKind what = FlowRowKind::path;
  double t = 0;
  double risk = 0;
  double gradient_norm = 0;
  Matrix U;
  std::optional<Vector> r;         // regression and tasks of your own
  std::optional<Matrix> V, W;      // other tasks
  std::optional<double> distance;  // path only, where the limit is known
  // Summary only.
  std::optional<std::string> task, model;
  std::optional<TaskLoss> loss;  // absent for half the squared error
  std::optional<Length> L;
  std::optional<ParameterSpace> parametrisation;
  std::optional<LayerFamily> family;  // other tasks, instead of a parametrisation
  std::optional<Features> features;
  std::optional<FlowStatus> status;
  std::optional<std::string> message;
  std::optional<double> risk_std_error;
  std::optional<Engine> engine;
  std::optional<bool> heavy;
  std::optional<double> bayes, bayes_std_error;
  std::optional<bool> bound;  // absent unless it is true
  std::optional<double> affine, linear;
  std::optional<double> conserved_drift;
  std::optional<double> energy_defect, largest_increase;
  std::optional<std::int64_t> steps, evaluations;
  std::optional<double> alpha, alpha_bound;
  std::optional<double> limit_distance, limit_b;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("what", row.what, "", "path, or summary of the whole flow");
    column("task", row.task, "", "type of the task, absent for regression");
    column("loss", row.loss, "", "the risk is the mean of this loss instead");
    column("model", row.model, "", "kind of attention of the heads");
    column("L", row.L, "tokens", "length of the prompt");
    column("parametrisation", row.parametrisation, "", "coordinates of the flow");
    column("family", row.family, "", "layers in which the flow moves");
    column("features", row.features, "", "law of the features");
    column("status", row.status, "", "how the flow ended");
    column("message", row.message, "", "what the solver said when it failed");
    column("t", row.t, "", "time of the flow");
    column("risk", row.risk, "", "half the mean squared error; on fresh nodes in the summary");
    column("risk_std_error", row.risk_std_error, "", "standard error of the risk");
    column("engine", row.engine, "", "how prompts were averaged over");
    column("heavy", row.heavy, "", "few nodes or draws carry the risk: its error is too small");
    column("bayes", row.bayes, "", "risk of the best prediction at this length");
    column("bayes_std_error", row.bayes_std_error, "", "standard error of the Bayes risk");
    column("bound", row.bound, "", "bayes knows more than the prompt tells: only a lower bound");
    column("affine", row.affine, "", "risk of the best affine map of the query");
    column("linear", row.linear, "", "risk of the best linear map of the query");
    column("gradient_norm", row.gradient_norm, "", "norm of the gradient of the risk");
    column("conserved_drift", row.conserved_drift, "", "largest change of what the flow keeps");
    column("energy_defect", row.energy_defect, "", "defect of the energy identity");
    column("largest_increase", row.largest_increase, "", "largest rise of the risk in one step");
    column("steps", row.steps, "", "steps of the solver");
    column("evaluations", row.evaluations, "", "evaluations of the gradient");
    column("alpha", row.alpha, "", "size of the balanced start");
    column("alpha_bound", row.alpha_bound, "", "largest size the theorem allows");
    column("limit_distance", row.limit_distance, "", "distance of the end from the known limit");
    column("limit_b", row.limit_b, "", "last entry of r at the known limit");
    column("distance", row.distance, "", "distance from the known limit");
    column("U", row.U, "", "K'Q of the heads, one below the other");
    column("r", row.r, "", "last row of V, which the prediction reads");
    column("V", row.V, "", "what the heads of a layer read, one below the other");
    column("W", row.W, "", "the residual of a layer");
  }

  // The head of a flow that has r, the layer of one that has not; `model` is that of the summary.
  [[nodiscard]] Readout readout() const { return {U, r.value()}; }
  [[nodiscard]] bool is_layer() const { return W.has_value(); }
  [[nodiscard]] Layer layer(const FlowRow& summary) const {
    return Layer::of_stacked(summary.model.value(), U, V.value(), W.value());
  }
};

// What a summary says of how the flow ended: the risk found there and what the integrator monitored.
void add_end(const FlowResult& flow, const Estimate& found, FlowRow& row);

// The one cell "flow".
Cells<FlowRow> flow_cells(const FlowProblem& problem);

struct FlowRecord {
  std::vector<FlowRow> path;
  FlowRow summary;
};

// Throws RuntimeFailure if the summary is missing.
FlowRecord assemble_flow(std::span<const FlowRow> rows);

}  // namespace esscher
