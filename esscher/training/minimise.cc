#include "esscher/training/minimise.h"

#include <algorithm>
#include <cmath>

namespace esscher {

Minimum minimise(const SmoothFunction& f, const VectorView& start, const MinimiseOptions& options) {
  const Index n = start.size();
  Vector g(n), trial_g(n);
  Minimum out{.x = start};
  out.value = f(out.x, g);
  out.evaluations = 1;
  Matrix inverse = Matrix::Identity(n, n);  // of the Hessian
  bool fresh = true;                        // nothing is known of the curvature
  int idle = 0;  // steps in a row that lowered the value by rounding only
  const auto is_flat = [&] { return g.norm() <= options.tolerance * (1 + std::abs(out.value)); };
  while (!is_flat() && out.evaluations < options.max_evaluations) {
    Vector step = -(inverse * g);
    if (!(g.dot(step) < 0)) {
      inverse.setIdentity();
      fresh = true;
      step = -g;
    }
    if (fresh) step *= std::min(1.0, 0.5 / step.norm());
    const double slope = g.dot(step);
    double length = 1, value = HUGE_VAL;
    // Rounding decides below this fall.
    const double noise = 1e-15 * std::abs(out.value);
    for (; length > 1e-12 && out.evaluations < options.max_evaluations; length /= 2) {
      value = f(out.x + length * step, trial_g);
      ++out.evaluations;
      if (std::isfinite(value) && value <= out.value + 1e-4 * length * slope + noise) break;
      value = HUGE_VAL;
    }
    if (!std::isfinite(value)) {
      if (fresh) {
        out.converged = true;  // not even a short step downhill lowers it
        break;
      }
      inverse.setIdentity();
      fresh = true;
      continue;
    }
    const Vector s = length * step, y = trial_g - g;
    const double sy = s.dot(y);
    if (sy > 1e-12 * s.norm() * y.norm()) {
      if (fresh) inverse *= sy / y.squaredNorm();
      const Vector Hy = inverse * y;
      inverse += (1 + y.dot(Hy) / sy) / sy * s * s.transpose() -
                 (Hy * s.transpose() + s * Hy.transpose()) / sy;
      fresh = false;
    }
    idle = out.value - value <= 1e-12 * std::abs(out.value) ? idle + 1 : 0;
    out.x += s;
    out.value = value;
    g = trial_g;
    if (options.is_beyond && options.is_beyond(out.x)) {
      out.escaped = true;
      break;
    }
    if (idle < 3) continue;
    out.converged = true;
    break;
  }
  out.gradient_norm = g.norm();
  out.converged = !out.escaped && (out.converged || is_flat());
  return out;
}

}  // namespace esscher
