// One door to every risk of a regression task: the best formula the case allows.
//
//                       L = infinity         linear, finite L     softmax, finite L
//   gaussian features   limit_risk           linear_risk          SoftmaxRisk (quadrature nodes)
//   other features, your own tasks: SampleRisk on fixed draws, prompts averaged over where the laws
//   are Gaussian and drawn token by token elsewhere
#pragma once

#include "esscher/risk/quadrature.h"
#include "esscher/risk/sample_risk.h"

namespace esscher {

struct RiskOptions {
  int log2_nodes = 12;        // quadrature of softmax at finite L
  int scramblings = 8;        // independent repetitions behind a standard error
  std::int64_t draws = 4000;  // of tasks, for features that are not Gaussian and your own tasks
  // direct draws prompts even where a formula exists; exact refuses where none does (task_risk.h)
  Engine engine = Engine::automatic;
  Stream stream{0};
};

// A differentiable risk for flows, closed forms or fixed nodes; the same nodes or draws at every L.
RiskFunction risk_function(const LinearRegressionTask& task, ModelKind kind, Length length,
                           const RiskOptions& options);

// The risk with its standard error: 0 for closed forms, over scramblings for softmax, over draws
// for simulation.
Estimate model_risk(const LinearRegressionTask& task, const Readout& at, ModelKind kind,
                    Length length, const RiskOptions& options);

// The same for any task, on fixed draws; model_risk takes draws other than those of risk_function.
RiskFunction risk_function(const Task& task, ModelKind kind, Length length,
                           const RiskOptions& options);
Estimate model_risk(const Task& task, const Readout& at, ModelKind kind, Length length,
                    const RiskOptions& options);

}  // namespace esscher
