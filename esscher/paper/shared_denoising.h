// What the sections on denoising share: the task with two opposite means, and the layer that is the
// posterior mean at L = infinity (task/denoising.h).
#pragma once

#include "esscher/risk/layer.h"
#include "esscher/task/denoising.h"

namespace esscher::paper {

// Means +m and -m of equal weight.
DenoisingTask opposite_means(const Vector& m, double gamma, double xi);

// U = I/S, V = (xi^2/S) I, W = ((gamma^2 - xi^2)/S) I in R^d, S = gamma^2 + xi^2.
Layer residual_layer(Index d, double gamma, double xi);

// 1 + |x - y|/|y|, how far a ratio of vectors is from 1.
double ratio_of(const Vector& x, const Vector& y);

}  // namespace esscher::paper
