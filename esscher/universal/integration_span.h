// Where the Laplace integrals of finite prompts begin and end on the axis u = log t. Scores are
// sum_k p_k N(mu_k, tau^2), y = e^{u+s}, and the prompt has L tokens.
//
// On the left integrands are at most L E y^{order} times what averages to a number of order one:
// order 2 for values of mean 0 under the tilted weights and one head, order 1 in general. On the
// right every y is large, or L E[1 - e^-y] > 60.
#pragma once

#include <cstdint>

#include "esscher/base/linalg.h"

namespace esscher {

struct IntegrationSpan {
  double left, right;
};

// How far below u + v = 0 a score N(v, tau^2) adds more than e^-l to E[y e^-y], y = e^{u+s}.
double first_order_reach(double tau, double l);

// weights p [K] > 0, mu [K], order 1 or 2.
IntegrationSpan integration_span(const VectorView& weights, const VectorView& mu, double tau,
                                 std::int64_t L, int order);

}  // namespace esscher
