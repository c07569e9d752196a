// The forward pass of a text through a model, with a door at every attention head.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "esscher/model/model.h"

namespace esscher {

// What enters one head: rows are positions. Queries and keys are turned by their positions already,
// and not scaled.
struct HeadInput {
  Index layer = 0;
  Index head = 0;
  Matrix Q, K, V;  // [n,head_dim]
  double scale = 1;
};

// Outputs [n,head_dim] of one head. It is called for every head, several at a time.
using HeadRule = std::function<Matrix(const HeadInput&)>;

// Causal softmax attention.
Matrix softmax_head(const HeadInput& head);

struct Pass {
  MatrixF states;                     // [n,dim] after the last norm
  std::vector<double> residual_norm;  // per layer: median |x| of the stream that attention adds to
  std::vector<Matrix> attention;      // per layer: [n,heads*head_dim], outputs of the heads
};

// Runs the tokens, each in [0, vocab), at most `context` of them. Throws ArgumentError otherwise.
Pass run_model(const Model& model, std::span<const Index> tokens, const HeadRule& rule);

// Log-probabilities [rows,vocab] of the next word after positions [first, first + rows).
MatrixF log_probabilities(const Model& model, const Pass& pass, Index first, Index rows);

}  // namespace esscher
