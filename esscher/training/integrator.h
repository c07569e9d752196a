// y' = f(y) by SUNDIALS CVODE: BDF with Newton and a dense difference Jacobian (stiff, the
// default), or Adams with fixed-point iteration. One internal step at a time, dense output inside
// the last step.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "esscher/base/linalg.h"

namespace esscher {

enum class Stepping { bdf, adams };

class Integrator {
 public:
  // f(y, out) fills out [n]; a value that is not finite makes the step shorter, and fails in the
  // end.
  using Field = std::function<void(const VectorView& y, Eigen::Ref<Vector> out)>;

  Integrator(Field f, const VectorView& y0, double rtol, double atol, Stepping stepping);
  ~Integrator();
  Integrator(Integrator&&) noexcept;
  Integrator& operator=(Integrator&&) noexcept;

  // One internal step that does not pass t_stop. False if the solver gave up: see message().
  bool step(double t_stop);

  [[nodiscard]] double t() const;
  [[nodiscard]] Vector y() const;
  // y at a time inside the last step.
  [[nodiscard]] Vector at(double time) const;
  [[nodiscard]] std::int64_t steps() const;
  [[nodiscard]] std::int64_t evaluations() const;
  [[nodiscard]] const std::string& message() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace esscher
