// The authors' experiment: what is trained (experiment_cells.cc), as rows that the section judges and
// shows (experiment.cc).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "esscher/paper/section.h"
#include "esscher/risk/model_kind.h"
#include "esscher/task/regression.h"

namespace esscher::paper {

enum class ExperimentPreset { intended, released };
inline constexpr ExperimentPreset kPresets[] = {ExperimentPreset::intended,
                                                ExperimentPreset::released};

constexpr auto enum_names(ExperimentPreset) {
  return EnumNames<ExperimentPreset, 2>{
      "preset",
      {{{ExperimentPreset::intended, "as intended"}, {ExperimentPreset::released, "as released"}}}};
}

// The theorem's start in units of the largest that the theorem allows.
inline constexpr double kTheoremStart = 0.5;

struct Schedule {
  std::int64_t steps;
  double learning_rate;
  Index batch;
  int starts;
};

Schedule schedule(const Options& options);

// Lengths of the default starts, which the cost of SGD limits.
std::vector<std::int64_t> default_lengths(const Options& options);

LinearRegressionTask task_of(ExperimentPreset preset);

// What nothing can predict, as a mean squared error.
double floor_of(const LinearRegressionTask& task);

// start: the end of SGD from one default start. theorem: the end of the flow from the balanced
// start. stationary: the point to which the flow of the exact risk goes on from the best, a typical
// high, or the worst end of SGD.
enum class ExperimentKind { start, theorem, stationary };

constexpr auto enum_names(ExperimentKind) {
  return EnumNames<ExperimentKind, 3>{"kind of row",
                                      {{{ExperimentKind::start, "start"},
                                        {ExperimentKind::theorem, "theorem"},
                                        {ExperimentKind::stationary, "stationary"}}}};
}

struct ExperimentRow {
  ExperimentKind kind = ExperimentKind::start;
  ExperimentPreset preset = ExperimentPreset::intended;
  ModelKind model = ModelKind::softmax;
  Length L = 1;
  std::optional<std::int64_t> start = {};
  std::string status = {};
  double mse = 0;
  double std_error = 0;
  std::optional<double> bayes = {}, bayes_error = {};
  std::optional<double> gradient_norm = {};
  std::optional<double> curvature_low = {}, curvature_high = {};
  std::optional<std::int64_t> falling = {};
  std::optional<std::int64_t> learned = {};
  std::optional<double> slope_low = {}, slope_high = {}, label_share = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("kind", row.kind, "", "what the row holds");
    column("preset", row.preset, "", "as the paper describes it, or as its code was released");
    column("model", row.model, "", "softmax or linear attention");
    column("L", row.L, "tokens", "length of the prompt");
    column("start", row.start, "", "number of the default start");
    column("status", row.status, "", "how flow or training ended");
    column("mse", row.mse, "", "test mean squared error");
    column("std_error", row.std_error, "", "standard error");
    column("bayes", row.bayes, "", "mean squared error of the Bayes predictor");
    column("bayes_error", row.bayes_error, "", "its standard error");
    column("gradient_norm", row.gradient_norm, "", "norm of the gradient of the risk in (U, r)");
    column("curvature_low", row.curvature_low, "", "smallest eigenvalue of the Hessian in (U, r)");
    column("curvature_high", row.curvature_high, "", "largest eigenvalue of the Hessian");
    column("falling", row.falling, "", "eigenvalues of the Hessian below zero beyond rounding");
    column("learned", row.learned, "", "directions of the query whose slope is above 1/2");
    column("slope_low", row.slope_low, "", "smallest slope of prediction on target, 1 is perfect");
    column("slope_high", row.slope_high, "", "largest slope of prediction on target");
    column("label_share", row.label_share, "", "share of the squared readout on the label");
  }
};

Cells<ExperimentRow> experiment_cells(const Options& options);

// How many of the high ends, typical or worst, the flow leaves for the point of the best end of the
// same cell (to 1 % of the error), and how many it leaves for another one. In each cell the row of
// the best end stands first. Empty if there is no high end.
std::string high_ends_text(std::span<const ExperimentRow> rows);

}  // namespace esscher::paper
