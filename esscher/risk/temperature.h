// What cooling or heating a trained head buys. A head (U, r) at temperature T reads with the scores
// of (U/T, r); with the factor f = 1/T on scores, R_L(f) is the risk of (f U, r) at length L (risk.h)
// and
//
//   f*(L) = argmin over f > 0 of R_L(f)
//
// is the factor that a prompt of L tokens asks for, whatever length the head was trained at.
// R_L(f) is a polynomial of degree two where it has a closed form (L = infinity, linear attention):
//
//   f* = -R'(0) / R''                                    exact; none where this is not positive
//
// Elsewhere it is minimised on `scramblings` independent sets of nodes, draws or prompts. f* is the
// mean of their minima, and their spread is its standard error. The risk at f*, and the gain over the
// factor in force, are measured on sets of their own, the gain in pairs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "esscher/base/cells.h"
#include "esscher/risk/risk.h"
#include "esscher/risk/shift.h"

namespace esscher {

// f U instead of U. Temperature 1/f.
std::vector<Readout> at_factor(std::vector<Readout> heads, double f);

struct TemperatureProblem {
  LinearRegressionTask task;   // that of training, before any shift
  std::vector<Readout> heads;  // their scores at factor 1
  ModelKind kind = ModelKind::softmax;
  std::vector<Length> lengths;
  std::vector<double> scheduled = {};  // the factor in force at each length; empty: 1
  std::vector<double> factors;         // the grid, on top of the factor in force
  std::vector<TaskShift> shifts = {};  // besides none
  RiskOptions risk;
};

struct BestFactor {
  std::optional<double> factor = {};  // absent: no factor between 2^-13 and 2^13 is best
  double std_error = 0;               // 0 for a closed form
};
BestFactor best_factor(const LinearRegressionTask& task, const std::vector<Readout>& heads,
                       ModelKind kind, Length length, const RiskOptions& options);

enum class TemperatureRowKind { grid, best };

constexpr auto enum_names(TemperatureRowKind) {
  return EnumNames<TemperatureRowKind, 2>{
      "kind of row", {{{TemperatureRowKind::grid, "grid"}, {TemperatureRowKind::best, "best"}}}};
}

struct TemperatureRow {
  TemperatureRowKind what = TemperatureRowKind::grid;
  std::string shift = {};  // "none", "covariance x 4"
  Length L = Length::infinity();
  std::optional<double> factor = {}, factor_std_error = {};
  std::optional<double> temperature = {};
  std::optional<double> risk = {}, std_error = {};
  std::optional<Engine> engine = {};
  std::optional<bool> heavy = {};
  double scheduled = 1;
  // Best only.
  std::optional<double> risk_before = {}, gain = {}, gain_std_error = {};
  std::optional<double> limit_factor = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("what", row.what, "", "a point of the grid, or the best factor at this length");
    column("shift", row.shift, "", "how the task differs from that of training");
    column("L", row.L, "tokens", "length of the prompt");
    column("factor", row.factor, "", "what the scores of the head are multiplied by");
    column("factor_std_error", row.factor_std_error, "", "standard error of the best factor");
    column("temperature", row.temperature, "", "one over the factor");
    column("risk", row.risk, "", "half the mean squared error, target noise included");
    column("std_error", row.std_error, "", "standard error of the risk");
    column("engine", row.engine, "", "how prompts were averaged over");
    column("heavy", row.heavy, "", "few nodes or draws carry the risk: its error is too small");
    column("scheduled", row.scheduled, "", "the factor in force: that of the schedule, or 1");
    column("risk_before", row.risk_before, "", "the risk at the factor in force");
    column("gain", row.gain, "", "how much lower the risk is at the best factor, in pairs");
    column("gain_std_error", row.gain_std_error, "", "its standard error");
    column("limit_factor", row.limit_factor, "", "the best factor of an infinite prompt");
  }
};

// One cell for each shift, none first, and each length: a row for each factor of the grid, then the
// best one. Throws ArgumentError for lists that do not fit or factors that are not positive.
Cells<TemperatureRow> temperature_cells(const TemperatureProblem& problem);

}  // namespace esscher
