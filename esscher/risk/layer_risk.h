// The risk of a layer on a task beyond regression: one half of the mean squared error, summed over
// coordinates, averaged over laws, queries, prompts and targets.
//
//   L = infinity, any layer                    quadrature over nodes; no token is drawn
//   finite L, one softmax head or linear ones  the same, exact over prompts (layer_error.h)
//   finite L, several softmax heads            the same if the engine exact is asked for; else drawn
//   finite L, other layers                     direct: prompts are drawn
//   finite L, the logistic loss of labels      direct
//
// Beside it stand predictions that every layer should be compared with:
//
//   bayes    the best one. It knows the law of the tokens where every prompt has the same or tells
//            it, as an infinite prompt does. From other prompts it is the posterior mean, by a
//            formula, a quadrature or chains (posterior_risk.h). Where none of them serves, the
//            predictor that
//            knows the law is a bound that no prediction beats.
//   affine   the best map A z + b of the query alone
//   linear   the best map A z of the query alone
#pragma once

#include <functional>
#include <vector>

#include "esscher/base/length.h"
#include "esscher/risk/context_nodes.h"
#include "esscher/risk/layer.h"
#include "esscher/risk/posterior_risk.h"
#include "esscher/risk/risk_rows.h"

namespace esscher {

// The engine that serves: quadrature or direct. Throws CapabilityError for one that does not.
RiskChoice choose_layer_risk(const ContextTask& task, const Layer& layer, Length length,
                             Engine engine);

// Throws CapabilityError if so many prompts of L tokens do not fit into memory at once.
void check_prompt_memory(const ContextTask& task, Length L, std::int64_t prompts);

Estimate layer_risk(const ContextTask& task, const Layer& layer, Length length,
                    const RiskOptions& options);

// A differentiable risk; the gradient is overwritten when asked for.
using LayerRiskFunction = std::function<double(const Layer& at, Layer* gradient)>;

// On fixed nodes, or on options.draws fixed prompts where there is no formula: smooth, with its
// exact gradient, for descents. For one stream the nodes are the same at every L.
LayerRiskFunction layer_risk_function(const ContextTask& task, const Layer& like, Length length,
                                      const RiskOptions& options);

// Options for this length with which layer_risk_function averages over the same nodes or draws at
// every length: at L = infinity over as few as at finite ones.
RiskOptions shared_nodes(const ContextTask& task, const Layer& like, Length length,
                         RiskOptions options);

struct ReferenceRisks {
  Estimate bayes;
  BayesBy bayes_by = BayesBy::known_law;
  Estimate affine, linear;

  // It knows the law, which a finite prompt does not tell.
  [[nodiscard]] bool bayes_is_bound() const { return bayes_by == BayesBy::bound; }
};
ReferenceRisks reference_risks(const ContextTask& task, Length length, const RiskOptions& options);

struct LayerProblem {
  ContextTask task;
  Layer layer;
  std::vector<Length> lengths;
  RiskOptions risk;
  bool references = true;
  std::optional<Length> trained = {};
};

// For each length one row for the layer, then bayes, affine and linear if references are asked for.
std::vector<RiskRow> layer_risk_rows(const LayerProblem& problem);

}  // namespace esscher
