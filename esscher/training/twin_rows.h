// A comparison of twin trajectories as a grid of cells: the reference at L = infinity, one twin for
// each model and length, one search for L(eps) for each model and eps. Risks are halves of mean
// squared errors, the noise of the target included.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "esscher/base/cells.h"
#include "esscher/task/loss.h"
#include "esscher/training/twins.h"

namespace esscher {

struct CompareProblem {
  TwinSetup setup;
  std::vector<ModelKind> kinds{ModelKind::softmax, ModelKind::linear};
  std::vector<Length> lengths;
  std::vector<double> eps;
  std::int64_t bayes_replicates = 1000;
};

enum class TwinRowKind { path, summary, length };

constexpr auto enum_names(TwinRowKind) {
  return EnumNames<TwinRowKind, 3>{"kind of row",
                                   {{{TwinRowKind::path, "path"},
                                     {TwinRowKind::summary, "summary"},
                                     {TwinRowKind::length, "length"}}}};
}

struct TwinRow {
  TwinRowKind what = TwinRowKind::path;
  std::string model;        // "infinity" for the reference, else the kind of attention
  std::optional<Length> L;  // of path and summary
  std::optional<std::string> status;
  std::optional<double> t;
  // Path.
  std::optional<double> risk, reference_risk, distance, gradient_gap, gradient_gap_std_error;
  // Summary.
  std::optional<double> limiting_risk, std_error;
  std::optional<Engine> engine;
  std::optional<bool> heavy;  // of path too
  std::optional<double> bayes, bayes_std_error, excess;
  std::optional<double> sup_distance, sup_gradient_gap, sup_gradient_gap_std_error, sup_risk_gap,
      horizon;
  std::optional<Matrix> U;
  std::optional<Vector> r;
  // Of layers only.
  std::optional<std::string> task;
  std::optional<TaskLoss> loss;  // absent for half the squared error
  std::optional<bool> bound;     // absent unless it is true
  std::optional<double> affine;
  std::optional<Matrix> V, W;
  // Length; `risk` is the limiting risk there.
  std::optional<double> eps, target, risk_before;
  std::optional<std::int64_t> length, length_low, length_high;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("what", row.what, "", "path, summary of a twin, or length for a risk");
    column("task", row.task, "", "type of the task, absent for regression");
    column("loss", row.loss, "", "the risk is the mean of this loss instead");
    column("model", row.model, "", "kind of attention, or infinity for the reference");
    column("L", row.L, "tokens", "length of the prompt");
    column("status", row.status, "", "how the flow or the search ended");
    column("t", row.t, "", "time of the flow");
    column("eps", row.eps, "", "allowed excess over the limiting risk at L = infinity");
    column("target", row.target, "", "limiting risk at L = infinity");
    column("length", row.length, "tokens", "smallest L within eps of the target");
    column("length_low", row.length_low, "tokens", "lower end of a 95 % interval of `length`");
    column("length_high", row.length_high, "tokens", "upper end of a 95 % interval of `length`");
    column("risk", row.risk, "", "risk of the twin; limiting risk at `length`");
    column("risk_before", row.risk_before, "", "limiting risk one token before `length`");
    column("reference_risk", row.reference_risk, "", "risk of the reference at the same time");
    column("distance", row.distance, "", "distance of the parameters from the reference");
    column("gradient_gap", row.gradient_gap, "", "gap of the gradients on the reference path");
    column("gradient_gap_std_error", row.gradient_gap_std_error, "", "standard error of the gap");
    column("limiting_risk", row.limiting_risk, "", "risk where the flow stopped, on fresh nodes");
    column("std_error", row.std_error, "", "standard error of the limiting risk");
    column("engine", row.engine, "", "how prompts were averaged over");
    column("heavy", row.heavy, "", "few nodes carry the risk or the gap: its error is too small");
    column("bayes", row.bayes, "", "risk of the best prediction at this length");
    column("bayes_std_error", row.bayes_std_error, "", "standard error of the Bayes risk");
    column("bound", row.bound, "", "bayes knows more than the prompt tells: only a lower bound");
    column("affine", row.affine, "", "risk of the best affine map of the query");
    column("excess", row.excess, "", "limiting risk minus Bayes risk");
    column("sup_distance", row.sup_distance, "", "largest distance along the path");
    column("sup_gradient_gap", row.sup_gradient_gap, "", "largest gap of gradients");
    column("sup_gradient_gap_std_error", row.sup_gradient_gap_std_error, "",
           "standard error of the largest gap");
    column("sup_risk_gap", row.sup_risk_gap, "", "largest difference of the risks");
    column("horizon", row.horizon, "", "time up to which the twins stay together");
    column("U", row.U, "", "K'Q of the heads where the flow stopped, one below the other");
    column("r", row.r, "", "last row of V there");
    column("V", row.V, "", "what the heads of a layer read there, one below the other");
    column("W", row.W, "", "the residual of a layer there");
  }
};

// Keys "reference", "softmax L=10", .., "softmax eps=0.1", ... The reference flow, which every cell
// needs, is integrated here, once.
Cells<TwinRow> twin_cells(const CompareProblem& problem);

// What every twin says: its path, and a summary, which is the last row.
std::vector<TwinRow> track_rows(const TwinTrack& twin, const std::string& model);
TwinRow length_row(const LengthForRisk& found, const std::string& model, double target);

struct CompareResult {
  std::vector<TwinRow> twins;    // the reference first
  std::vector<TwinRow> lengths;  // L(eps)
  std::vector<TwinRow> path;
};

CompareResult assemble_twins(std::span<const TwinRow> rows);

}  // namespace esscher
