// What is learned in context. A task draws a law of tokens mu, a query z and a target y; a head (U,
// r) reads r' m_a[mu] with a = U z (softmax) or r' S[mu] a (linear) and should say y. Any Measure
// serves as a law: a closed form, a combinator, your own class, or a Python object.
//
//   Task     your own: any function from a stream to (law, query, target)
//   AnyTask  linear regression (task/regression.h), which has formulas, or a Task, which is drawn
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "esscher/measure/any_measure.h"
#include "esscher/task/features.h"
#include "esscher/task/regression.h"

namespace esscher {

// One draw of a task: the law of its tokens, or a prompt as an empirical law.
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

// Linear regression with any features as a Task: tokens (x, w'x + eps) are the affine image
// [[F, 0], [w'F, sig]] of (xi, noise), the query is (x, 0), the target w'x (+ noise).
Task regression_task(const LinearRegressionTask& task);

// What regression_task draws, for a task, a query and a target that were drawn elsewhere.
std::function<ContextDraw(const RegressionDraw&)> regression_context(
    const LinearRegressionTask& task);

class AnyTask {
 public:
  AnyTask() = default;  // regression in one dimension, without covariances: check() refuses it
  AnyTask(LinearRegressionTask task);  // NOLINT(google-explicit-constructor): a task is a task
  AnyTask(Task task);                  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool is_regression() const;
  // Closed forms and quadrature over (w, x) exist: linear regression with Gaussian features.
  [[nodiscard]] bool has_formulas() const;
  // Throws CapabilityError if this is a task of your own.
  [[nodiscard]] const LinearRegressionTask& regression() const;
  // The draws of either: your own task, or regression_task.
  [[nodiscard]] Task drawn() const;

  [[nodiscard]] Index token_dim() const;
  [[nodiscard]] std::string name() const;
  // Throws ArgumentError or DimensionError naming the field that is wrong.
  void check() const;

 private:
  std::variant<LinearRegressionTask, Task> task_;
};

}  // namespace esscher
