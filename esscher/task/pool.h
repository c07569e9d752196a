// Linear regression whose task is one of finitely many:
//
//   w = w_i with probability pi_i, i = 1..M,   token (x, w'x + noise),   x ~ N(0, Sigma),
//   query (x, 0),   target w'x   (+ noise)
//
// The best prediction from a prompt weighs the members by their posterior probabilities,
//
//   E[y | prompt, x] = sum_i p_i w_i'x,   p_i ~ pi_i e^{-sum_l (y_l - w_i'x_l)^2 / 2 sig2},
//
// the discrete MMSE of the literature on task diversity. Without noise the members that fit exactly
// share the weight.
#pragma once

#include "esscher/task/context.h"

namespace esscher {

struct PoolTask {
  Matrix pool;                // w_i [M,d]
  Vector weights;             // pi [M] > 0; empty: equal
  Matrix cov;                 // Sigma [d,d]
  double noise_variance = 0;  // sig2
  bool query_noise = false;

  // Throws ArgumentError or DimensionError naming the field that is wrong.
  void check() const;
};

ContextTask pool_task(const PoolTask& task);

}  // namespace esscher
