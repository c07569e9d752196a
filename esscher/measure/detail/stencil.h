// Scores that are moved to a lattice of step kLatticeStep: a score becomes kStencil lattice points with
// the Lagrange weights of the polynomial through them, which keeps the averages of functions of the
// score. y^j e^-y, y = e^s, is analytic for |Im s| < pi/2, and the error is below 1e-14 (measured:
// tests/measure).
#pragma once

#include <Eigen/Core>

namespace esscher {

inline constexpr double kLatticeStep = 1.0 / 16;
inline constexpr int kStencil = 17;
using Stencil = Eigen::Matrix<double, kStencil, 1>;

// The weights of the stencil around the nearest lattice point, at offset x in steps.
inline Stencil stencil(double x) {
  Stencil w = Stencil::Zero();
  constexpr int half = kStencil / 2;
  double binomial = 1, sum = 0;
  for (int j = 0; j < kStencil; ++j) {
    const double gap = x - (j - half);
    if (gap == 0) {
      w.setZero();
      w[j] = 1;
      return w;
    }
    w[j] = binomial / gap;
    sum += w[j];
    binomial *= -static_cast<double>(kStencil - 1 - j) / (j + 1);
  }
  return w / sum;
}

}  // namespace esscher
