#include "esscher/training/integrator.h"

#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>

#include "esscher/base/error.h"
#include "esscher/training/runge_kutta.h"

namespace esscher {
namespace {

struct FreeContext {
  void operator()(SUNContext c) const { SUNContext_Free(&c); }
};
struct FreeVector {
  void operator()(N_Vector v) const { N_VDestroy(v); }
};
struct FreeMatrix {
  void operator()(SUNMatrix m) const { SUNMatDestroy(m); }
};
struct FreeLinear {
  void operator()(SUNLinearSolver s) const { SUNLinSolFree(s); }
};
struct FreeNonlinear {
  void operator()(SUNNonlinearSolver s) const { SUNNonlinSolFree(s); }
};
struct FreeCvode {
  void operator()(void* memory) const { CVodeFree(&memory); }
};
template <class Handle, class Free>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Free>;

Eigen::Map<Vector> map(N_Vector v) {
  return {N_VGetArrayPointer(v), static_cast<Index>(N_VGetLength(v))};
}

void require(bool ok, const char* what) {
  if (!ok) throw RuntimeFailure(std::string("integrator: ") + what + " failed");
}

// CVODE prints its messages by default. The library never prints, so they are kept instead.
void keep_message(int, const char*, const char*, char* text, void* into) {
  *static_cast<std::string*>(into) = text;
}

// Steps of differences, relative to a component or, where it is smaller than kTiny of the state, to that.
constexpr double kDifference = 0x1p-26;  // the square root of the rounding of doubles
constexpr double kTiny = 1e-6;

}  // namespace

struct Integrator::Impl {
  std::optional<RungeKutta> own;  // serves alone, without anything below
  Field f;
  double t = 0;
  double rtol = 0, atol = 0;
  std::int64_t differences = 0;  // evaluations of f for Jacobians
  std::string message;
  std::exception_ptr error;  // thrown by f; must not cross the C code of CVODE
  // Destroyed in reverse order: the solver memory first, the context last.
  Owned<SUNContext, FreeContext> context;
  Owned<N_Vector, FreeVector> y;
  Owned<SUNMatrix, FreeMatrix> matrix;
  Owned<SUNLinearSolver, FreeLinear> linear;
  Owned<SUNNonlinearSolver, FreeNonlinear> nonlinear;
  std::unique_ptr<void, FreeCvode> memory;

  // The step-size control uses the norm of the whole state. With CVODE's default weights, one per
  // component, a component that is zero by symmetry would be held to atol. That is finer than the
  // quadrature error of the risk, and steps would stop growing.
  static int weights(N_Vector y, N_Vector out, void* user) {
    const auto& self = *static_cast<Impl*>(user);
    const double size = map(y).norm() / std::sqrt(static_cast<double>(N_VGetLength(y)));
    map(out) = (self.rtol * map(y).array().abs().max(size) + self.atol).inverse();
    return 0;
  }

  static int call(double, N_Vector y, N_Vector out, void* user) {
    auto& self = *static_cast<Impl*>(user);
    try {
      self.f(map(y), map(out));
    } catch (const DomainError& e) {  // a step too far: CVODE tries a shorter one
      self.message = e.what();
      return 1;
    } catch (...) {
      self.error = std::current_exception();
      return -1;
    }
    return map(out).allFinite() ? 0 : 1;  // 1: CVODE tries a shorter step
  }

  // The Jacobian by differences. CVODE's own moves every component by 1e-8 of itself: one that is zero by
  // symmetry moves so little that its column is nothing but rounding, and Newton's iterations fail.
  static int jacobian(sunrealtype, N_Vector y, N_Vector at_y, SUNMatrix out, void* user,
                      N_Vector work, N_Vector, N_Vector) {
    auto& self = *static_cast<Impl*>(user);
    const double size = map(y).norm() / std::sqrt(static_cast<double>(N_VGetLength(y)));
    for (Index j = 0; j < map(y).size(); ++j) {
      double& moved = map(y)(j);
      const double kept = moved, own = std::abs(kept);
      const double step = kDifference * (own > kTiny * size ? own : std::max(size, kDifference));
      moved += step;
      const int status = call(0, y, work, user);
      ++self.differences;
      moved = kept;
      if (status != 0) return status;
      Eigen::Map<Vector>(SUNDenseMatrix_Column(out, j), map(y).size()) =
          1 / step * (map(work) - map(at_y));
    }
    return 0;
  }
};

Integrator::Integrator(Field f, const VectorView& y0, double rtol, double atol, Stepping stepping)
    : impl_(std::make_unique<Impl>()) {
  Impl& m = *impl_;
  if (stepping == Stepping::runge_kutta) {
    m.own.emplace(std::move(f), y0, rtol, atol);
    return;
  }
  m.f = std::move(f);
  SUNContext context = nullptr;
  require(SUNContext_Create(nullptr, &context) == 0, "SUNContext_Create");
  m.context.reset(context);
  m.y.reset(N_VNew_Serial(y0.size(), context));
  require(m.y != nullptr, "N_VNew_Serial");
  map(m.y.get()) = y0;
  m.memory.reset(CVodeCreate(stepping == Stepping::bdf ? CV_BDF : CV_ADAMS, context));
  void* memory = m.memory.get();
  require(memory != nullptr, "CVodeCreate");
  CVodeSetErrHandlerFn(memory, keep_message, &m.message);
  require(CVodeInit(memory, Impl::call, 0.0, m.y.get()) == CV_SUCCESS, "CVodeInit");
  require(CVodeSetUserData(memory, &m) == CV_SUCCESS, "CVodeSetUserData");
  m.rtol = rtol;
  m.atol = atol;
  require(CVodeWFtolerances(memory, Impl::weights) == CV_SUCCESS, "CVodeWFtolerances");
  if (stepping == Stepping::bdf) {
    m.matrix.reset(SUNDenseMatrix(y0.size(), y0.size(), context));
    m.linear.reset(SUNLinSol_Dense(m.y.get(), m.matrix.get(), context));
    require(m.linear != nullptr, "SUNLinSol_Dense");
    require(CVodeSetLinearSolver(memory, m.linear.get(), m.matrix.get()) == CV_SUCCESS,
            "CVodeSetLinearSolver");
    require(CVodeSetJacFn(memory, Impl::jacobian) == CV_SUCCESS, "CVodeSetJacFn");
  } else {
    m.nonlinear.reset(SUNNonlinSol_FixedPoint(m.y.get(), 0, context));
    require(m.nonlinear != nullptr, "SUNNonlinSol_FixedPoint");
    require(CVodeSetNonlinearSolver(memory, m.nonlinear.get()) == CV_SUCCESS,
            "CVodeSetNonlinearSolver");
  }
}

Integrator::~Integrator() = default;
Integrator::Integrator(Integrator&&) noexcept = default;
Integrator& Integrator::operator=(Integrator&&) noexcept = default;

bool Integrator::step(double t_stop) {
  Impl& m = *impl_;
  if (m.own) return m.own->step(t_stop);
  if (std::isfinite(t_stop)) CVodeSetStopTime(m.memory.get(), t_stop);
  // In one-step mode tout only gives the direction and the scale of the first step.
  const double out = std::isfinite(t_stop) ? t_stop : m.t + 1;
  const int flag = CVode(m.memory.get(), out, m.y.get(), &m.t, CV_ONE_STEP);
  if (m.error) std::rethrow_exception(m.error);
  return flag >= 0;
}

double Integrator::t() const { return impl_->own ? impl_->own->t() : impl_->t; }
Vector Integrator::y() const {
  if (impl_->own) return impl_->own->y();
  return map(impl_->y.get());
}

Vector Integrator::at(double time) const {
  Impl& m = *impl_;
  if (m.own) return m.own->at(time);
  const Owned<N_Vector, FreeVector> out(N_VClone(m.y.get()));
  require(CVodeGetDky(m.memory.get(), time, 0, out.get()) == CV_SUCCESS, "CVodeGetDky");
  return map(out.get());
}

std::int64_t Integrator::steps() const {
  if (impl_->own) return impl_->own->steps();
  long n = 0;
  CVodeGetNumSteps(impl_->memory.get(), &n);
  return n;
}

std::int64_t Integrator::evaluations() const {
  if (impl_->own) return impl_->own->evaluations();
  long n = 0;
  CVodeGetNumRhsEvals(impl_->memory.get(), &n);
  return n + impl_->differences;
}

const std::string& Integrator::message() const {
  return impl_->own ? impl_->own->message() : impl_->message;
}

}  // namespace esscher
