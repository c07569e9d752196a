// Risks of one model at several lengths, beside the best prediction (bayes.h): a table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "esscher/base/columns.h"
#include "esscher/risk/posterior_risk.h"
#include "esscher/risk/risk.h"
#include "esscher/task/loss.h"

namespace esscher {

struct RiskRow {
  Length L = Length::infinity();
  std::string model;  // "softmax", "linear" or "bayes"; other tasks have more (layer_risk.h)
  double risk = 0;
  double std_error = 0;
  Engine engine = Engine::exact;
  std::int64_t n = 0;
  std::optional<bool> heavy = {};     // absent in runs written before it was known
  std::optional<double> factor = {};  // absent without a schedule
  std::optional<std::string> task = {};
  std::optional<TaskLoss> loss = {};     // absent for half the squared error
  std::optional<bool> bound = {};        // absent unless it is true
  std::optional<BayesBy> bayes_by = {};  // of rows of bayes on other tasks than regression
  std::optional<Length> trained = {};    // absent unless the model was trained

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("model", row.model, "",
           "softmax, linear, or bayes for the best prediction; affine, linear: maps of the query");
    column("risk", row.risk, "", "half the mean squared error, target noise included");
    column("std_error", row.std_error, "", "standard error of the risk");
    column("engine", row.engine, "", "how prompts were averaged over");
    column("n", row.n, "", "independent replicates behind the standard error");
    column("heavy", row.heavy, "", "few nodes or draws carry the risk: its error is too small");
    column("factor", row.factor, "", "what the schedule multiplies the scores by");
    column("task", row.task, "", "type of the task");
    column("loss", row.loss, "", "the risk is the mean of this loss instead");
    column("bound", row.bound, "", "bayes knows more than the prompt tells: only a lower bound");
    column("bayes_by", row.bayes_by, "", "how the best prediction was found, in its rows");
    column("trained", row.trained, "tokens", "length of the prompts that the model was trained on");
  }
};

RiskRow risk_row(Length length, std::string model, const Estimate& risk);

struct RiskProblem {
  LinearRegressionTask task;
  std::vector<Readout> heads;
  std::vector<ModelKind> kinds{ModelKind::softmax, ModelKind::linear};
  std::vector<Length> lengths;
  std::vector<double> factors = {};  // on the scores at each length; empty: 1
  RiskOptions risk;
  std::int64_t bayes_replicates = 1000;
  bool references = true;
  std::optional<Length> trained = {};
};

// For each length one row per kind, then one for Bayes if references are asked for.
std::vector<RiskRow> risk_rows(const RiskProblem& problem);

// The Bayes risk of a flow, a training run or a table, on draws of their own.
RiskRow bayes_row(const LinearRegressionTask& task, Length length, std::int64_t replicates,
                  const RiskOptions& options);

}  // namespace esscher
