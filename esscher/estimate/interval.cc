#include "esscher/estimate/interval.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "esscher/base/error.h"

namespace esscher {
namespace {

void check_level(double level) {
  if (!(level > 0 && level < 1)) {
    throw_argument("confidence interval", "level", to_text(level), "a number between 0 and 1");
  }
}

// Inverse of g(T) = T + s T^2/3 + s^2 T^3/27 + s/(6n), the skewness correction (s = skewness).
double hall_inverse(double y, double skewness, double n) {
  if (std::abs(skewness) < 1e-8) return y;
  return 3 / skewness * (std::cbrt(1 + skewness * (y - skewness / (6 * n))) - 1);
}

}  // namespace

double normal_quantile(double level) {
  check_level(level);
  return boost::math::quantile(boost::math::normal(), 0.5 + level / 2);
}

double student_quantile(double dof, double level) {
  check_level(level);
  if (!(dof > 0)) return std::numeric_limits<double>::infinity();
  return boost::math::quantile(boost::math::students_t(dof), 0.5 + level / 2);
}

Interval normal_interval(double value, double std_error, double level) {
  const double half = std_error == 0 ? 0 : normal_quantile(level) * std_error;
  return {value - half, value + half};
}

Interval student_interval(double value, double std_error, double dof, double level) {
  const double half = std_error == 0 ? 0 : student_quantile(dof, level) * std_error;
  return {value - half, value + half};
}

Interval mean_interval(const VectorView& samples, double level) {
  if (samples.size() < 2) {
    throw_argument("mean_interval", "samples", std::to_string(samples.size()) + " numbers",
                   "at least 2");
  }
  const double n = static_cast<double>(samples.size());
  const double mean = samples.mean();
  const Eigen::ArrayXd centred = samples.array() - mean;
  const double s = std::sqrt(centred.square().sum() / (n - 1));
  if (s == 0) return {mean, mean};
  const double skewness = (centred / s).cube().sum() / n;
  const double y = student_quantile(n - 1, level) / std::sqrt(n);
  return {mean - s * hall_inverse(y, skewness, n), mean - s * hall_inverse(-y, skewness, n)};
}

Interval chi_square_interval(double value, double dof, double level) {
  check_level(level);
  if (!(dof > 0)) return {0, std::numeric_limits<double>::infinity()};
  // Beyond this many degrees of freedom the law is normal to the last printed digit.
  if (dof > 1e8) return normal_interval(value, value * std::sqrt(2 / dof), level);
  const boost::math::chi_squared law(dof);
  const double upper = quantile(complement(law, (1 - level) / 2));
  const double lower = quantile(law, (1 - level) / 2);
  return {value * dof / upper,
          lower > 0 ? value * dof / lower : std::numeric_limits<double>::infinity()};
}

}  // namespace esscher
