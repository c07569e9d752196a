// Integrates y' = f(y) by the explicit Runge-Kutta pair 5(4) of Dormand and Prince [DP80], with its
// interpolant of order 4 [HNW93, II.6]. It needs no library, so that it also runs in a browser.
//
//   error of a step = sqrt(mean_i (e_i / w_i)^2),   w_i = atol + rtol max(|y_i|, |y|/sqrt n)
//
// The weights are those of Integrator. A step is taken if its error is at most 1. A field that
// throws DomainError or is not finite asks for a shorter step. Stiff problems take many steps; the
// step size then stays at the edge of stability and the answer stays right.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "esscher/base/linalg.h"

namespace esscher {

class RungeKutta {
 public:
  using Field = std::function<void(const VectorView& y, Eigen::Ref<Vector> out)>;  // fills out [n]

  RungeKutta(Field f, const VectorView& y0, double rtol, double atol);

  // One step that does not pass t_stop. False if no step is short enough: see message().
  bool step(double t_stop);

  [[nodiscard]] double t() const { return t_; }
  [[nodiscard]] const Vector& y() const { return y_; }
  // y at a time inside the last step.
  [[nodiscard]] Vector at(double time) const;
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  [[nodiscard]] std::int64_t evaluations() const { return evaluations_; }
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  bool slope(const Vector& y, Vector& out);
  [[nodiscard]] Vector weights(const Vector& y) const;
  [[nodiscard]] double size(const Vector& x, const Vector& w) const;
  bool start();
  // The error of a step of length h, with y and the slopes of its stages; infinity if the field refuses.
  double attempt(double h, Vector& y);

  Field f_;
  double rtol_, atol_;
  double t_ = 0, h_ = 0;  // h_: the length to try next, 0 before the first step
  double t_before_ = 0;
  Vector y_, y_before_;
  std::array<Vector, 7> k_;       // slopes of the stages; k_[6] is the slope at the new point
  std::array<Vector, 7> k_last_;  // those of the last step taken, for at()
  std::int64_t steps_ = 0, evaluations_ = 0;
  std::string message_;
};

}  // namespace esscher
