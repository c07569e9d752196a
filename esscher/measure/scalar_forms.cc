#include "esscher/measure/scalar_forms.h"

#include <cmath>

namespace esscher {
namespace {

constexpr double kLog2 = 0.693147180559945309417;
// Below this |a| the series are used. Above it the direct forms cancel by less than a factor of 4.
constexpr double kSeries = 2.0;

// sum_{k >= 1} c_k a^{2k} / (2k+1)! with c_k = 1, and with c_k = 2k.
struct SinhSeries {
  double plain = 0;     // sinh a / a - 1
  double weighted = 0;  // cosh a - sinh a / a
};

SinhSeries sinh_series(double a) {
  const double square = a * a;
  SinhSeries out;
  double term = square / 6;
  for (int k = 1; term > 1e-18 * out.plain; ++k) {
    out.plain += term;
    out.weighted += 2 * k * term;
    term *= square / ((2 * k + 2) * (2 * k + 3));
  }
  return out;
}

}  // namespace

double log_cosh(double a) {
  const double x = std::abs(a);
  if (x < 1) {
    const double s = std::sinh(0.5 * x);
    return std::log1p(2 * s * s);
  }
  return x - kLog2 + std::log1p(std::exp(-2 * x));
}

double sech_squared(double a) {
  const double e = std::exp(-std::abs(a));  // squared last, so that the tail is lost only to
  const double s = 2 * e / (1 + e * e);     // underflow of the result itself
  return s * s;
}

double log_sinhc(double a) {
  const double x = std::abs(a);
  if (x < kSeries) return std::log1p(sinh_series(x).plain);
  return x - kLog2 - std::log(x) + std::log1p(-std::exp(-2 * x));
}

double langevin(double a) {
  const double x = std::abs(a);
  if (x == 0) return a;
  if (x < 1e-8) return a / 3;
  if (x < kSeries) {
    const SinhSeries s = sinh_series(x);
    return s.weighted / (a * (1 + s.plain));
  }
  return std::copysign(1 / std::tanh(x) - 1 / x, a);
}

// 1/a^2 - 1/sinh^2 = (sinh - a)(sinh + a) / (a sinh)^2; with s = sinh a / a - 1 this is
// (s / a^2) (2 + s) / (1 + s)^2.
double langevin_derivative(double a) {
  const double x = std::abs(a);
  if (x < 1e-8) return 1.0 / 3;
  if (x < kSeries) {
    const double s = sinh_series(x).plain;
    return s / (x * x) * (2 + s) / ((1 + s) * (1 + s));
  }
  const double e = std::exp(-x);
  const double cosech = 2 * e / (1 - e * e);
  return 1 / x / x - cosech * cosech;
}

}  // namespace esscher
