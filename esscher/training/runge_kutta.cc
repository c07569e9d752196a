#include "esscher/training/runge_kutta.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// The table of [DP80]: stage i reads the slopes before it; the last row is the step itself.
constexpr double kStage[6][6] = {
    {1.0 / 5},
    {3.0 / 40, 9.0 / 40},
    {44.0 / 45, -56.0 / 15, 32.0 / 9},
    {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
    {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
    {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}};
// Order 5 minus order 4.
constexpr double kError[7] = {71.0 / 57600,      0,          -71.0 / 16695, 71.0 / 1920,
                              -17253.0 / 339200, 22.0 / 525, -1.0 / 40};
// The highest coefficient of the interpolant.
constexpr double kDense[7] = {-12715105075.0 / 11282082432,  0,
                              87487479700.0 / 32700410799,   -10690763975.0 / 1880347072,
                              701980252875.0 / 199316789632, -1453857185.0 / 822651844,
                              69997945.0 / 29380423};

constexpr double kSafety = 0.9, kShrink = 0.2, kGrow = 5;

// Five bits of a length. The estimate of an error is a small difference and carries the rounding of
// the machine; steps of few bits are nevertheless the same on all of them.
double few_bits(double h) {
  int exponent = 0;
  const double mantissa = std::frexp(h, &exponent);
  return std::ldexp(std::floor(32 * mantissa) / 32, exponent);
}

}  // namespace

RungeKutta::RungeKutta(Field f, const VectorView& y0, double rtol, double atol)
    : f_(std::move(f)), rtol_(rtol), atol_(atol), y_(y0), y_before_(y0) {
  for (Vector& k : k_) k = Vector::Zero(y0.size());
  k_last_ = k_;
}

bool RungeKutta::slope(const Vector& y, Vector& out) {
  ++evaluations_;
  try {
    f_(y, out);
  } catch (const DomainError& e) {
    message_ = e.what();
    return false;
  }
  return out.allFinite();
}

Vector RungeKutta::weights(const Vector& y) const {
  const double mean = y.norm() / std::sqrt(static_cast<double>(y.size()));
  return (rtol_ * y.array().abs().max(mean) + atol_).inverse();
}

double RungeKutta::size(const Vector& x, const Vector& w) const {
  return std::sqrt((x.array() * w.array()).square().mean());
}

// The first step by the change of the slope along a trial step [HNW93, II.4].
bool RungeKutta::start() {
  if (!slope(y_, k_[6])) return false;
  const Vector w = weights(y_);
  const double state = size(y_, w), speed = size(k_[6], w);
  const double trial = state > 1e-5 && speed > 1e-5 ? 0.01 * state / speed : 1e-6;
  Vector ahead(y_.size());
  double curvature = 0;
  if (slope(y_ + trial * k_[6], ahead)) curvature = size(ahead - k_[6], w) / trial;
  const double most = std::max(speed, curvature);
  h_ = few_bits(std::min(100 * trial, most > 1e-15 ? std::pow(0.01 / most, 0.2) : 1e-3));
  return true;
}

double RungeKutta::attempt(double h, Vector& y) {
  for (std::size_t stage = 0; stage < 6; ++stage) {
    Vector sum = Vector::Zero(y_.size());
    for (std::size_t j = 0; j <= stage; ++j) {
      if (kStage[stage][j] != 0) sum += kStage[stage][j] * k_[j];
    }
    y = y_ + h * sum;
    if (!slope(y, k_[stage + 1])) return std::numeric_limits<double>::infinity();
  }
  Vector error = Vector::Zero(y_.size());
  for (std::size_t j = 0; j < 7; ++j) error += kError[j] * k_[j];
  return size(h * error, weights(y_));
}

bool RungeKutta::step(double t_stop) {
  if (h_ == 0 && !start()) return false;
  k_[0] = k_[6];
  Vector y(y_.size());
  bool refused = false;
  for (;;) {
    const bool last = t_ + h_ >= t_stop;
    const double h = last ? t_stop - t_ : h_;
    if (!(h > 1e-14 * std::max(1.0, std::abs(t_)))) {
      k_[6] = k_[0];
      if (message_.empty()) message_ = "Runge-Kutta: the step size became too small";
      return false;
    }
    const double error = attempt(h, y);
    // Above the power of the order a smooth error falls; a step after a refusal does not grow.
    const double factor =
        std::clamp(kSafety * std::pow(error, -0.2), kShrink, refused ? 1.0 : kGrow);
    if (error <= 1) {
      t_before_ = t_;
      y_before_ = std::exchange(y_, std::move(y));
      k_last_ = k_;
      t_ = last ? t_stop : t_ + h;
      if (!last || factor < 1) h_ = few_bits(h * factor);
      ++steps_;
      return true;
    }
    refused = true;
    h_ = few_bits(h * (std::isfinite(error) ? factor : kShrink));
  }
}

Vector RungeKutta::at(double time) const {
  const double h = t_ - t_before_;
  if (h == 0) return y_;
  const double s = (time - t_before_) / h;
  const Vector change = y_ - y_before_;
  const Vector bend = h * k_last_[0] - change;
  Vector top = Vector::Zero(y_.size());
  for (std::size_t j = 0; j < 7; ++j) top += kDense[j] * k_last_[j];
  return y_before_ + s * (change + (1 - s) * (bend + s * (change - h * k_last_[6] - bend +
                                                          (1 - s) * (h * top))));
}

}  // namespace esscher
