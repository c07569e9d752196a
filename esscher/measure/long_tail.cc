#include "esscher/measure/long_tail.h"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <numbers>

namespace esscher {

// Gamma(a + 1/2)/Gamma(a) is a quotient, because lgamma of large arguments loses digits.
LongTail::LongTail(double nu, double middle, double tau) : nu_(nu), middle_(middle), tau_(tau) {
  const double ratio = 1 / boost::math::tgamma_delta_ratio(nu / 2, 0.5);
  factor_ = ratio / std::sqrt(nu * std::numbers::pi);
  tail_factor_ = ratio / (nu * std::sqrt(std::numbers::pi));
}

double LongTail::density(double s) const {
  const double x = t(s);
  return weight * factor_ / tau_ * std::exp(-0.5 * (nu_ + 1) * std::log1p(x * x / nu_));
}

double LongTail::exponent(double s) const {
  const double x = std::abs(s - middle_), beyond = weight * upper(x / tau_);
  return beyond > 0 ? std::min(nu_, x * density(s) / beyond) : nu_;
}

// Half of the incomplete beta function I_z(nu/2, 1/2), z = nu/(nu + t^2), by its series in z where z is
// small: z^a Gamma(a + 1/2)/(Gamma(a) sqrt(pi)) sum_k (1/2)_k/k! z^k/(a + k), a = nu/2.
double LongTail::upper(double t) const {
  constexpr double kSmall = 0.25;
  if (t < 0) return 1 - upper(-t);
  const double z = nu_ / (nu_ + t * t), a = nu_ / 2;
  if (z > kSmall) return 0.5 * boost::math::ibeta(a, 0.5, z);
  double power = 1, sum = 1;
  for (int k = 1; power > 1e-17; ++k) {
    power *= z * (k - 0.5) / k;
    sum += power * a / (a + k);
  }
  return tail_factor_ * std::exp(-a * std::log1p(t * t / nu_)) * sum;
}

}  // namespace esscher
