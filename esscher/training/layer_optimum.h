// The best layer of a family at a prompt length, by descent on the exact risk from several starts:
// what a finite prompt asks for, against what an infinite one does. A family may be that of
// factors: KQV with key_dim below the dimension of a token is the layers of low-rank scores.
//
// Starts descend on fewer nodes, if there are many, and the best of their ends on all of them. The
// least risk may be one of infinite scores: without noise the largest of ten tokens tells a sign
// best. A descent therefore ends where the deviation of scores grows beyond kSharpest, and `sharp`
// says so; one gradient there takes time in proportion to the scores.
//
// A row has the optimum of its length, with its risk on nodes of its own, beside the references of
// layer_risk.h and three other layers: the optimum of the infinite prompt, read at this length; the
// best layer of as many linear heads; and the better or worse end of a descent from (-U, -V), its
// mirror. A change of both signs may change nothing, so that optima come in two families: the mean
// label of two classes of equal weight is tanh(<a, m_+ - m_->/2), which is odd in the tilt a.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "esscher/base/cells.h"
#include "esscher/risk/layer_risk.h"
#include "esscher/training/layer_map.h"
#include "esscher/training/minimise.h"

namespace esscher {

inline constexpr double kSharpest = 16;

// The greatest root mean square of <U_h z, z'> over softmax heads, of a query and a token.
double score_deviation(const Layer& layer, const QueryMoments& moments);

struct OptimumProblem {
  ContextTask task;
  std::vector<ModelKind> kinds{ModelKind::softmax};  // one for each head
  LayerFamily family = LayerFamily::scalars;         // full with factors
  LayerFactors factors = {};
  std::optional<Layer> start = {};  // takes the place of the first start
  std::vector<Length> lengths;
  int restarts = 4;
  RiskOptions risk;
};

struct LayerOptimum {
  Layer layer;
  Vector phi;       // in the coordinates of the family or of its factors
  double risk = 0;  // on the nodes of the descent
  double gradient_norm = 0;
  int agreeing = 0;  // starts that ended within 1e-6 of the least risk
  bool converged = false;
  bool sharp = false;  // the descent went on to scores beyond kSharpest
  // One more descent starts at the best of these ends with U and V of the other sign. The optimum
  // is the lower one of both, this is the other one.
  Layer mirror;
  double mirror_risk = 0;
};

// Starts are fixed by options.risk.stream; the first is a small layer with scores of deviation 1/2.
LayerOptimum layer_optimum(const OptimumProblem& problem, Length length);

struct OptimumRow {
  Length L = Length::infinity();
  std::string task;
  std::optional<TaskLoss> loss = {};  // absent for half the squared error
  LayerFamily family = LayerFamily::scalars;
  std::string model;
  double risk = 0, std_error = 0;
  Engine engine = Engine::quadrature;
  std::optional<double> u = {}, v = {}, w = {};  // of the first head, if scalars
  double bayes = 0;
  std::optional<double> bayes_std_error = {};  // absent in older runs
  std::optional<bool> bound = {};
  std::optional<BayesBy> bayes_by = {};  // absent in older runs
  double affine = 0, linear = 0;
  double limit_risk = 0;                    // of the optimum at L = infinity, at this length
  std::optional<double> linear_heads = {};  // absent if all heads are linear
  std::optional<double> mirror_risk = {};   // absent in older runs
  std::int64_t restarts = 0, agreeing = 0;
  bool converged = false;
  std::optional<bool> sharp = {};                      // absent unless it is true
  std::optional<ParameterSpace> parametrisation = {};  // of factors, with their key_dim
  std::optional<std::int64_t> key_dim = {};
  double gradient_norm = 0;
  Matrix U, V, W;  // heads one below the other

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("task", row.task, "", "type of the task");
    column("loss", row.loss, "", "the risk is the mean of this loss instead");
    column("family", row.family, "", "layers that were searched");
    column("model", row.model, "", "attention of the layer");
    column("risk", row.risk, "", "half the mean squared error of the best layer, on fresh nodes");
    column("std_error", row.std_error, "", "standard error of the risk");
    column("engine", row.engine, "", "how prompts were averaged over");
    column("u", row.u, "", "factor of the scores of the first head, for scalars");
    column("v", row.v, "", "what its output is multiplied by, for scalars");
    column("w", row.w, "", "factor of the residual, for scalars");
    column("bayes", row.bayes, "", "risk of the best prediction");
    column("bayes_std_error", row.bayes_std_error, "", "its standard error");
    column("bound", row.bound, "", "bayes knows more than the prompt tells: only a lower bound");
    column("bayes_by", row.bayes_by, "", "how the best prediction was found");
    column("affine", row.affine, "", "risk of the best affine map of the query");
    column("linear", row.linear, "", "risk of the best linear map of the query");
    column("limit_risk", row.limit_risk, "", "risk here of the layer that is best at L = inf");
    column("linear_heads", row.linear_heads, "", "least risk of as many linear heads");
    column("mirror_risk", row.mirror_risk, "",
           "risk of the other end, from (-U, -V): the same if optima come in two families");
    column("restarts", row.restarts, "", "starts of the descent");
    column("agreeing", row.agreeing, "", "starts that ended at the least risk");
    column("converged", row.converged, "", "the descent of the best start ended where it is flat");
    column("sharp", row.sharp, "",
           "the search left at scores of deviation 16: the best layer is sharper");
    column("parametrisation", row.parametrisation, "", "factors that were searched, if any");
    column("key_dim", row.key_dim, "", "rows of K and Q, for factors");
    column("gradient_norm", row.gradient_norm, "", "norm of the gradient where it ended");
    column("U", row.U, "", "scores of the heads, one below the other");
    column("V", row.V, "", "what the heads read, one below the other");
    column("W", row.W, "", "the residual");
  }
};

// One cell for each length.
Cells<OptimumRow> optimum_cells(const OptimumProblem& problem);

}  // namespace esscher
