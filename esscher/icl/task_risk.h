// In-context learning in general: a task draws a token measure mu, a query z and a target y, and a
// head (U, r) predicts r' m_a[mu], a = U z (softmax), or r' S[mu] a (linear). Any Measure serves: a
// C++ class, a combinator, or a Python object. Risks are halves of mean squared errors.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "esscher/base/estimate.h"
#include "esscher/icl/model_kind.h"
#include "esscher/icl/readout.h"
#include "esscher/icl/task.h"
#include "esscher/measure/any_measure.h"

namespace esscher {

struct ContextDraw {
  AnyMeasure tokens;
  Vector query;  // [D]
  double target = 0;
};

struct Task {
  Index token_dim = 1;  // D
  std::string name;
  std::function<ContextDraw(const Stream&)> draw;  // a pure function of the stream
};

// Linear regression with any features: tokens (x, w'x + eps) are the affine image
// [[F, 0], [w'F, sig]] of (xi, noise); query (x, 0), target w'x (+ noise).
Task regression_task(const LinearRegressionTask& task);

// Mean of half squared errors over n draws of the task; a prompt of length L is drawn token by
// token, an infinite one uses the measure's own tilted moments. n >= 2.
Estimate simulated_risk(const Task& task, const Readout& at, ModelKind kind, Length length,
                        std::int64_t n, const Stream& stream);

// The same average over n draws fixed once: a smooth function of (U, r) with an exact gradient, fit
// for gradient_flow. Prompts of length L are drawn once and kept (n L D numbers). For one stream
// the draws are the same at every L, and a prompt is a prefix of the longer one.
class SampleRisk {
 public:
  SampleRisk(const Task& task, ModelKind kind, Length length, std::int64_t n, const Stream& stream);
  double operator()(const Readout& at, Readout* gradient = nullptr) const;

 private:
  ModelKind kind_;
  Index token_dim_;
  std::shared_ptr<const std::vector<ContextDraw>> draws_;
};

}  // namespace esscher
