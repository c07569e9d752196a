// Moments of one Gaussian token under the Laplace weight: with y = e^{u + mu + tau g}, g ~ N(0,1),
//
//   psi(u) = E[1 - e^-y]        G_kj(u) = E[y^k e^-y x^j],  x = g - shift,  k = 1..4
//
// The integrals are taken by the trapezoidal rule in log y. The integrands are analytic in the
// strip |Im log y| < pi/2 and decay like a Gaussian or doubly exponentially at the ends, so the
// step 1/6 leaves errors below 1e-16. The functions of y are tabulated on a fixed lattice log y =
// j/6 + const, once per process for mu = 0, and a moment is a dot product of that table with a
// Gaussian. For tau < 0.28 the lattice would be too coarse for the Gaussian, and the nodes are
// placed in g instead.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <memory>

namespace esscher {

class TokenMoments {
 public:
  static constexpr double kStep = 1.0 / 6;
  using Table = Eigen::Matrix<double, 5, 5>;  // (k, j); row 0 holds psi in column 0
  using Columns = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic>;

  // degree is the largest j wanted, 0..4. No later call may ask for a u below u_min.
  TokenMoments(double tau, double shift, int degree, double u_min);
  // For scores of mean mu. Only this one serves excess().
  TokenMoments(double tau, double shift, int degree, double u_min, double mu);

  // psi, G_10, G_20 and G_22 (degree >= 2) only, at u = i * kStep.
  struct Basic {
    double psi, G1, G2, G2xx;
  };
  [[nodiscard]] Basic basic(long i) const;
  [[nodiscard]] double third(long i) const;  // G_30

  // Everything up to the degree, at u = i * kStep; unused columns are 0.
  [[nodiscard]] Table all(long i) const;

  // E[y (1 - e^-y)] = E[y] - G_10 without the subtraction; infinity where it overflows.
  [[nodiscard]] double excess(long i) const;

 private:
  void make_kernel(double step, double shift, double reach);
  struct Window {
    long first, count;  // rows of the y table
    long kernel;        // first row of the kernel
    long tail = 0;      // first row of the kernel to the right of the y table, where 1 - e^-y = 1
  };
  [[nodiscard]] Window window(long i) const;
  // Column k of the y table times column j of the kernel, over a window.
  [[nodiscard]] double dot(int k, int j, const Window& w) const;
  [[nodiscard]] Columns near(double u) const;

  double tau_, mu_;
  int degree_;
  bool fine_;         // small tau: nodes follow g, functions of y evaluated at each u
  long lattice_ = 0;  // mu in steps; the rest of it is in the y table
  long table_first_ = 0;
  std::shared_ptr<const Columns> y_;  // [rows, 6]: 1 - e^-y, y e^-y, .., y^4 e^-y, y (1 - e^-y)
  long kernel_first_ = 0;
  Columns kernel_;          // [nodes, degree + 1]: weight * x^j
  Eigen::VectorXd tail_;    // [nodes + 1]: weight of nodes >= row
  Eigen::VectorXd tail_y_;  // the same with weight * e^{tau g - tau^2/2}
  Eigen::VectorXd growth_;  // [nodes]: e^{tau g}, fine only
};

// power[p] = L!/(L-p)! (1 - psi)^{L-p} for p = 1..4, 0 where L < p.
struct Survival {
  Survival(std::int64_t L, double psi);
  double power[5] = {};
};

}  // namespace esscher
