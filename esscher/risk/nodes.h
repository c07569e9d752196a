// Quadrature over tasks w ~ N(0, s2 I) and queries x ~ N(0, Sigma_q) of a regression task with
// Gaussian features, by scrambled Sobol points mapped to normals (random/sobol.h).
//
// Where few queries are sharp, they carry the risk of long prompts: the error of softmax grows like
// e^{tau^2} in the variance tau^2 of the scores until it freezes on one token. Nodes may therefore
// be widened towards large tau (random/widened_normals.h), for one head,
//
//   tau^2 = a'G_w a,   a = (alpha x, beta'x)
//   E_w tau^2 = x'[alpha'S alpha + (s2 tr S + sig2) beta beta']x,
//
// and where beta != 0 it grows in w as well, like (beta'x)^2 w'S w.
#pragma once

#include "esscher/random/sobol.h"
#include "esscher/risk/readout.h"
#include "esscher/task/regression.h"

namespace esscher {

// How tau^2 of a head grows with the query, x'query x on average over w, and with the task, w'task
// w at (beta'x)^2 = beta'Sigma_q beta.
struct ScoreForms {
  Matrix query, task;  // [d,d]
};
ScoreForms score_forms(const LinearRegressionTask& task, const Readout& at);

// beta = 0 up to rounding: scores do not read the labels of the prompt. The error of a head is then
// a polynomial in w, so that w can be averaged over by hand (query_risk.h).
bool is_blind_to_labels(const LinearRegressionTask& task, const Readout& at);

// beta = 0 and v_x = 0 up to rounding: U = [[A,0],[0,*]], r = (0,b). Flows keep this form.
bool is_block(const LinearRegressionTask& task, const Readout& at);

// Pairs (w, x), (-w, x), so that flows keep readouts of block form as the true average does.
struct RegressionNodes {
  Matrix w;       // [n,d]
  Matrix x;       // [n,d]
  Vector weight;  // [n], 1 on average
  [[nodiscard]] Index count() const { return w.rows(); }
};

struct QueryNodes {
  Matrix x;       // [n,d]
  Vector weight;  // [n], 1 on average
  [[nodiscard]] Index count() const { return x.rows(); }
};

// n = 2^log2_count nodes, equal weights.
RegressionNodes regression_nodes(const LinearRegressionTask& task, int log2_count,
                                 const Stream& stream);

// Standard normals for n = 2^log2_count nodes, of pairs [n/2,2d] or queries [n,d]. Making them
// takes longer than making nodes of them, and they serve the nodes of any head. Sets whose spread is
// a standard error are scrambled by nests (random/sobol.h).
Matrix pair_normals(const LinearRegressionTask& task, int log2_count, const Stream& stream,
                    Scrambling scrambling = Scrambling::linear);
Matrix query_normals(const LinearRegressionTask& task, int log2_count, const Stream& stream,
                     Scrambling scrambling = Scrambling::linear);

// Nodes of these normals, widened for a head with these forms.
RegressionNodes regression_nodes(const LinearRegressionTask& task, const MatrixView& normals,
                                 const ScoreForms& forms);
QueryNodes query_nodes(const LinearRegressionTask& task, const MatrixView& normals,
                       const ScoreForms& forms);

}  // namespace esscher
