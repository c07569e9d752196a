// In-context learning in general: a task draws a token measure mu, a query z and a target y, and a
// head (U, r) predicts r' m_a[mu], a = U z (softmax), or r' S[mu] a (linear). Any Measure serves: a
// C++ class, a combinator, or a Python object. Risks are halves of mean squared errors.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "esscher/base/estimate.h"
#include "esscher/measure/any_measure.h"
#include "esscher/risk/draw_error.h"
#include "esscher/task/regression.h"

namespace esscher {

struct Task {
  Index token_dim = 1;  // D
  std::string name;
  std::function<ContextDraw(const Stream&)> draw;  // a pure function of the stream
};

// Linear regression with any features: tokens (x, w'x + eps) are the affine image
// [[F, 0], [w'F, sig]] of (xi, noise); query (x, 0), target w'x (+ noise).
Task regression_task(const LinearRegressionTask& task);

// How a prompt of finite length is averaged over:
//   exact      not drawn at all (draw_error.h); the law of every draw must be Gaussian
//   direct     drawn token by token, any law
//   automatic  exact where every law is Gaussian, else direct
// An infinite prompt uses the measure's own tilted moments and draws no token.

// Mean of half squared errors over n draws of the task, n >= 2. The engine of the answer is direct
// if tokens were drawn. Throws CapabilityError if engine = exact has no formula.
Estimate simulated_risk(const Task& task, const Readout& at, ModelKind kind, Length length,
                        std::int64_t n, const Stream& stream, Engine engine = Engine::automatic);

// One draw of the task made ready for a prompt length: a law to average over, or tokens.
struct FixedDraw {
  ContextDraw draw;
  std::optional<GaussianLaw> law;  // the prompt is averaged over
  std::int64_t length = 0;         // of the prompt, with a law
  bool drawn = false;              // draw.tokens are a prompt of this length

  // Half the squared error; its gradient is added to *gradient.
  [[nodiscard]] double error(const Readout& at, ModelKind kind, Readout* gradient) const;
};
// Draw i of the stream, one of `kept` that live at the same time: CapabilityError if they take more
// than 8 GiB.
FixedDraw fix_draw(const Task& task, Length length, const Stream& stream, std::int64_t i,
                   Engine engine, std::int64_t kept = 1);

// The same average over n draws fixed once: a smooth function of (U, r) with an exact gradient, fit
// for gradient_flow. Prompts that are drawn are kept (n L D numbers; beyond 2^30 CapabilityError).
// For one stream the draws are the same at every L, and a prompt is a prefix of the longer one.
class SampleRisk {
 public:
  SampleRisk(const Task& task, ModelKind kind, Length length, std::int64_t n, const Stream& stream,
             Engine engine = Engine::automatic);
  double operator()(const Readout& at, Readout* gradient = nullptr) const;

 private:
  ModelKind kind_;
  Index token_dim_;
  std::shared_ptr<const std::vector<FixedDraw>> draws_;
};

}  // namespace esscher
