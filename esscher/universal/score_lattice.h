// Token moments of a mixture of Gaussian scores, for the Laplace integrals of score_mixture.h: with
// y = e^{u+s}, E[e^s] = 1, at the points u = i kScoreStep,
//
//   psi = E[1 - e^-y]   F_1[f] = E[y e^-y f]   F_2[f] = E[y^2 e^-y f]
//
// log y takes values on the same lattice for all components and all u, so that a moment is a dot
// product of a table of functions of y with a Gaussian. A component that is too narrow for the
// lattice has nodes of its own. zeta is a value with mean 0 under the tilted weights, so F_1[zeta]
// vanishes to first order in the bulk; there it is computed from 1 - e^-y, not by subtraction.
#pragma once

#include <memory>
#include <vector>

#include "esscher/base/linalg.h"

namespace esscher {

// Step of the trapezoidal rule in u and log y, whose error is e^{-pi^2/step}.
inline constexpr double kScoreStep = 0.5;
// The number of standard deviations that are kept of each component.
inline constexpr double kScoreReach = 7.5;

// The score is mu + tau g. Given g, with x = g - tau,
//   E[|zeta|^2 | g] = square[0] + square[1] x + square[2] x^2
struct ScoreComponent {
  double weight, tilted;  // p_k and p_k E_k[e^s]
  double mu, tau;
  double square[3];

  [[nodiscard]] double second(double g) const {
    const double x = g - tau;
    return square[0] + x * (square[1] + x * square[2]);
  }
};

class ScoreLattice {
 public:
  // No later call may ask for an i below i_min.
  ScoreLattice(const std::vector<ScoreComponent>& parts, long i_min);
  ~ScoreLattice();

  [[nodiscard]] double psi(long i) const;

  struct Node {
    double psi = 0;
    double square = 0;  // F_2[|zeta|^2]
  };
  // Also fills F [2K], so that
  //   F_1[zeta] = sum_k ( F[k] E_k[e^s zeta]/E_k[e^s] + F[K + k] Cov_k(zeta, s) )
  Node node(long i, double* F) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace esscher
