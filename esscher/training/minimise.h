// The minimum of a smooth function by BFGS with a line search (Armijo, then the curvature condition
// keeps the approximation positive definite). For functions of few variables with exact gradients.
#pragma once

#include <cstdint>
#include <functional>

#include "esscher/base/linalg.h"

namespace esscher {

// The value at x; the gradient is overwritten.
using SmoothFunction = std::function<double(const Vector& x, Vector& gradient)>;

struct Minimum {
  Vector x;
  double value = 0;
  double gradient_norm = 0;
  std::int64_t evaluations = 0;
  bool converged =
      false;             // |gradient| <= tolerance (1 + |value|), or steps lower the value no more
  bool escaped = false;  // x is beyond the region of the options
};

struct MinimiseOptions {
  double tolerance = 1e-7;
  std::int64_t max_evaluations = 200;
  std::function<bool(const Vector& x)> is_beyond = {};  // a step that ends there is the last one
};

Minimum minimise(const SmoothFunction& f, const VectorView& start,
                 const MinimiseOptions& options = {});

}  // namespace esscher
