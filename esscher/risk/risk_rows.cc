#include "esscher/risk/risk_rows.h"

#include <utility>

#include "esscher/risk/bayes.h"
#include "esscher/risk/temperature.h"

namespace esscher {

RiskRow risk_row(Length length, std::string model, const Estimate& risk) {
  return {.L = length,
          .model = std::move(model),
          .risk = risk.value,
          .std_error = risk.std_error,
          .engine = risk.engine,
          .n = risk.n,
          .heavy = risk.heavy};
}

RiskRow bayes_row(const LinearRegressionTask& task, Length length, std::int64_t replicates,
                  const RiskOptions& options) {
  return risk_row(length, "bayes", bayes_risk(task, length, replicates, options.stream.split(2)));
}

std::vector<RiskRow> risk_rows(const RiskProblem& problem) {
  std::vector<RiskRow> rows;
  for (std::size_t i = 0; i < problem.lengths.size(); ++i) {
    const Length L = problem.lengths[i];
    std::optional<double> factor;
    if (!problem.factors.empty()) factor = problem.factors.at(i);
    const std::vector<Readout> heads = at_factor(problem.heads, factor.value_or(1));
    for (const ModelKind kind : problem.kinds) {
      rows.push_back(
          risk_row(L, std::string(name(kind)), risk(problem.task, heads, kind, L, problem.risk)));
      rows.back().factor = factor;
      rows.back().trained = problem.trained;
    }
    if (!problem.references) continue;
    rows.push_back(bayes_row(problem.task, L, problem.bayes_replicates, problem.risk));
  }
  for (RiskRow& row : rows) row.task = "regression";
  return rows;
}

}  // namespace esscher
