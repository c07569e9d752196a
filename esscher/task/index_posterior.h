// The best prediction of a single-index label from a finite prompt, E[g(w'x) | prompt]:
//
//   linear link, Gaussian w           formula: ridge regression
//   d = 1, w of given size            formula: two values of w
//   sign, d <= 2                      formula: the likelihood is constant on arcs of w/|w| between
//                                     directions orthogonal to a token
//   d = 1, Gaussian w                 quadrature over w
//   d = 2, w on the circle            quadrature over its angle
//   labels without noise              exact_labels.h, but for the sign
//   otherwise                         chains (posterior.h)
#pragma once

#include "esscher/task/single_index_task.h"

namespace esscher {

// Fills posterior_mean, posterior_by, evidence and tells_law_from. The law of w reads d normals.
void add_index_posterior(const SingleIndexTask& task, ContextTask& out);

// int e^l f / int e^l over [low, high] for a density that may be a narrow peak: panels are halved
// where halves say something else, from edges that close in on its highest point and on `mirror` of
// it. Relative error 1e-9 for a smooth density with one peak or two that mirror each other.
double line_mean(const std::function<double(double)>& log_density,
                 const std::function<double(double)>& f, double low, double high,
                 const std::function<double(double)>& mirror);

}  // namespace esscher
