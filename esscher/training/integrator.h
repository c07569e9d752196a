// Integrates y' = f(y), by CVODE of SUNDIALS: BDF with Newton's method and a dense Jacobian by
// differences (for stiff problems, the default), or Adams with fixed-point iteration; or by our own
// explicit Runge-Kutta (runge_kutta.h), which a browser has too. It takes one internal step at a
// time and interpolates inside the last step.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "esscher/base/enum_names.h"
#include "esscher/base/linalg.h"

namespace esscher {

enum class Stepping { bdf, adams, runge_kutta };

constexpr auto enum_names(Stepping) {
  return EnumNames<Stepping, 3>{"stepping",
                                {{{Stepping::bdf, "bdf"},
                                  {Stepping::adams, "adams"},
                                  {Stepping::runge_kutta, "runge-kutta"}}}};
}

class Integrator {
 public:
  // f(y, out) fills out [n]. If a value is not finite, shorter steps are tried, and finally it fails.
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
