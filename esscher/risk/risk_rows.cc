#include "esscher/risk/risk_rows.h"

#include <utility>

#include "esscher/risk/bayes.h"

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
  for (const Length L : problem.lengths) {
    for (const ModelKind kind : problem.kinds) {
      rows.push_back(risk_row(L, std::string(name(kind)),
                              risk(problem.task, problem.heads, kind, L, problem.risk)));
    }
    rows.push_back(bayes_row(problem.task, L, problem.bayes_replicates, problem.risk));
  }
  return rows;
}

}  // namespace esscher
