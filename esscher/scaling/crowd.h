// One given token among a crowd: N - 1 tokens whose scores are drawn from nodes (s_i, p_i), and one
// more, the needle, of score c. With y = e^{u+s} and psi = E[1 - e^-y], all scores times f,
//
//   E sum omega^2 = int { (N-1) E[y^2 e^-y] (1-psi)^{N-2} + e^{2(u+c)} (1-psi)^{N-1} } e^{-e^{u+c}} du
//   needle        = int e^{u+c} (1-psi)^{N-1} e^{-e^{u+c}} du
//
// by the trapezoidal rule in u, whose step of at most 1/4 leaves 1e-13. Functions of y are analytic and
// die doubly exponentially on the right; on the left they are e^{2u} or e^u, whose sums close. Scores
// are moved once to a lattice that keeps averages of these functions to 1e-13 (measure/score_law.h),
// and u steps along that lattice: the functions are then needed at some thousand arguments, whatever
// the number of scores, and the rest is inner products. This is the forecast of a head from its own
// scores (heads/score_scale.h): the heaviest key stays one key, the others are drawn again.
#pragma once

#include <optional>

#include "esscher/base/linalg.h"

namespace esscher {

class Crowd {
 public:
  // Each score is as likely as any other. ArgumentError unless there is one and all are finite.
  static Crowd of_scores(Vector scores, double needle);
  // Scores N(mean, tau^2), tau >= 0. Its nodes serve factors up to 4.
  static Crowd gaussian(double mean, double tau, double needle);

  struct Weights {
    double H = 0;       // E sum omega^2
    double needle = 0;  // E of the needle's weight
  };
  // N >= 2, any real number, and f > 0.
  [[nodiscard]] Weights at(double N, double f = 1) const;

  // The factor f >= 1/64 with 1/H at N equal to this effective sample size; nothing if none up to 64
  // has it.
  [[nodiscard]] std::optional<double> factor_for(double ess, double N) const;

 private:
  struct Lattice;
  Crowd(Vector scores, Vector weights, double needle);
  // The scores for factors from f/2 to f.
  [[nodiscard]] Lattice lattice(double f) const;
  [[nodiscard]] Weights at(const Lattice& scores, double N, double f) const;
  Vector s_, p_;
  double needle_ = 0;
};

}  // namespace esscher
