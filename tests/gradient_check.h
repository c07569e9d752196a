// The one gradient check: a claimed gradient against directional differences of the function.
//
//   D(h) = (f(x + h u) - f(x - h u)) / 2h,   R(h) = (4 D(h/2) - D(h)) / 3,
//   (16 R(h/2) - R(h)) / 15 = <grad, u> + O(h^6)
//
// in each coordinate direction and one mixed direction.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "esscher/base/linalg.h"

namespace esscher::testing {

struct GradientTolerance {
  double step = 1e-3;       // h, times max(1, largest |x|)
  double relative = 1e-9;   // of the largest of |gradient entries| and |f| * rounding below
  double rounding = 1e-12;  // error of f relative to |f|, amplified by 1/h
};

inline ::testing::AssertionResult gradient_check(const std::function<double(const Vector&)>& f,
                                                 const Vector& x, const VectorView& gradient,
                                                 const GradientTolerance& tolerance = {}) {
  if (gradient.size() != x.size()) {
    return ::testing::AssertionFailure()
           << "gradient has " << gradient.size() << " entries, x has " << x.size();
  }
  const double h = tolerance.step * std::max(1.0, x.cwiseAbs().maxCoeff());
  const double allowed =
      tolerance.relative * gradient.cwiseAbs().maxCoeff() + tolerance.rounding * std::abs(f(x)) / h;
  for (Index i = 0; i <= x.size(); ++i) {
    const Vector u = i < x.size() ? Vector(Vector::Unit(x.size(), i))
                                  : Vector(Vector::LinSpaced(x.size(), -1, 1.5).normalized());
    const auto difference = [&](double step) {
      return (f(x + step * u) - f(x - step * u)) / (2 * step);
    };
    const double coarse = difference(h), middle = difference(h / 2), fine = difference(h / 4);
    const double measured = (64 * fine - 20 * middle + coarse) / 45;
    const double claimed = gradient.dot(u);
    if (!(std::abs(measured - claimed) <= allowed)) {
      return ::testing::AssertionFailure()
             << "direction " << i << ": gradient " << claimed << ", difference " << measured
             << ", allowed error " << allowed;
    }
  }
  return ::testing::AssertionSuccess();
}

// The same for a matrix argument [r,c].
inline ::testing::AssertionResult gradient_check(const std::function<double(const Matrix&)>& f,
                                                 const Matrix& x, const Matrix& gradient,
                                                 const GradientTolerance& tolerance = {}) {
  const auto flat = [&](const Vector& values) {
    return f(Eigen::Map<const Matrix>(values.data(), x.rows(), x.cols()));
  };
  const Vector start = Eigen::Map<const Vector>(x.data(), x.size());
  return gradient_check(std::function<double(const Vector&)>(flat), start,
                        Eigen::Map<const Vector>(gradient.data(), gradient.size()), tolerance);
}

}  // namespace esscher::testing
