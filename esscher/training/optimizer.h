// One step of a first-order optimizer, as PyTorch defines it (torch.optim.SGD, Adam, AdamW).
//
//   sgd    b = momentum b + g (b = g at the first step);  theta -= lr b
//   adam   m = b1 m + (1-b1) g,  v = b2 v + (1-b2) g^2,  theta -= lr m^ / (sqrt(v^) + eps)
//   adamw  theta *= 1 - lr decay first, then adam without decay in g
//
// with m^ = m/(1 - b1^t), v^ = v/(1 - b2^t). For sgd and adam, decay adds decay * theta to g.
// Before all of this a gradient longer than clip is shortened to it (torch.nn.utils.clip_grad_norm_).
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "esscher/base/enum_names.h"
#include "esscher/base/error.h"
#include "esscher/base/linalg.h"

namespace esscher {

enum class OptimizerKind { sgd, adam, adamw };

constexpr auto enum_names(OptimizerKind) {
  return EnumNames<OptimizerKind, 3>{"optimizer",
                                     {{{OptimizerKind::sgd, "sgd"},
                                       {OptimizerKind::adam, "adam"},
                                       {OptimizerKind::adamw, "adamw"}}}};
}

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  double learning_rate = 1e-3;
  double momentum = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  std::optional<double> clip = {};  // the longest gradient of all parameters, in the Euclidean norm
};

// What a step reads and writes besides theta; empty before the first step.
struct OptimizerState {
  Vector first;   // momentum buffer, or Adam's m
  Vector second;  // Adam's v
};

// `t` counts from 1. Shapes of theta and gradient must agree.
inline void optimizer_step(const OptimizerOptions& o, std::int64_t t, const Vector& gradient,
                           Vector& theta, OptimizerState& state) {
  check_dimension("optimizer_step", "gradient", gradient.size(), theta.size());
  Vector g = gradient;
  if (o.clip) {
    const double length = g.norm();
    if (length > *o.clip) g *= *o.clip / length;
  }
  if (o.kind == OptimizerKind::adamw) {
    theta *= 1 - o.learning_rate * o.weight_decay;
  } else if (o.weight_decay != 0) {
    g += o.weight_decay * theta;
  }
  if (o.kind == OptimizerKind::sgd) {
    if (o.momentum == 0) {
      theta -= o.learning_rate * g;
      return;
    }
    if (state.first.size() == 0) {
      state.first = g;
    } else {
      state.first = o.momentum * state.first + g;
    }
    theta -= o.learning_rate * state.first;
    return;
  }
  if (state.first.size() == 0) {
    state.first = Vector::Zero(g.size());
    state.second = Vector::Zero(g.size());
  }
  state.first = o.beta1 * state.first + (1 - o.beta1) * g;
  state.second = o.beta2 * state.second + (1 - o.beta2) * g.cwiseAbs2();
  const auto time = static_cast<double>(t);
  const double first_scale = 1 / (1 - std::pow(o.beta1, time));
  const double second_scale = 1 / (1 - std::pow(o.beta2, time));
  theta.array() -= o.learning_rate * first_scale * state.first.array() /
                   ((second_scale * state.second.array()).sqrt() + o.epsilon);
}

}  // namespace esscher
