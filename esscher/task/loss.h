// What a prediction `out` [m] of a target t [m] loses:
//
//   squared   |out - t|^2 / 2
//   logistic  log(1 + e^{-t out}) for a label t = +-1, m = 1: out is read as the log odds of +1
//
// Both depend on the mean of t only, up to what no prediction changes. With v = E|t - Et|^2,
//
//   E squared  = squared(out, Et) + v/2
//   E logistic = log(1 + e^out) - (1 + Et)/2 out,
//
// because the logistic loss is affine in the label. It is computed as max(o, 0) + log1p(e^{-|o|}) minus
// that product, which does not overflow. Its least value is the entropy of the label, at the odds of
// p = (1 + Et)/2.
#pragma once

#include <optional>
#include <string_view>

#include "esscher/base/enum_names.h"
#include "esscher/base/linalg.h"

namespace esscher {

enum class TaskLoss { squared, logistic };

constexpr auto enum_names(TaskLoss) {
  return EnumNames<TaskLoss, 2>{
      "loss", {{{TaskLoss::squared, "squared"}, {TaskLoss::logistic, "logistic"}}}};
}

// "half the mean squared error" or "the mean logistic loss": what a risk is.
std::string_view mean_of(TaskLoss loss);

// The loss, unless it is the squared one: what rows say of it.
std::optional<TaskLoss> named_loss(TaskLoss loss);

// The loss at the mean of the target; *slope is its derivative in out.
double prediction_loss(TaskLoss loss, const Vector& out, const Vector& mean, Vector& slope);

// What is added to the loss at the mean for a target of this variance.
double spread_loss(TaskLoss loss, double variance);

// The mean loss of the best prediction for a target of this mean and variance.
double least_loss(TaskLoss loss, const Vector& mean, double variance);

// b that minimises sum_i w_i logistic(z_i'b, t_i), by Newton's method with halved steps: queries
// z [n,D], weights w [n] >= 0, mean labels t [n] in (-1, 1). Directions that no query has are left at
// 0. Throws RuntimeFailure if 200 steps do not suffice.
Vector logistic_fit(const Matrix& queries, const Vector& weights, const Vector& labels);

}  // namespace esscher
