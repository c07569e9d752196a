// Running tilted sums of one prompt, read at any of its prefixes, for the direct engine. With x = u -
// centre and w = e^{a'x - top}, over the tokens u so far,
//
//   S0 = sum w,   S00 = sum w^2,   S1 = sum w x,   S2 = sum w x x'   (only if asked for)
//
// `top` is the largest score so far, so nothing overflows; centre is near the tilted mean, so that
// the sums are small and the covariance S2/S0 - mean mean' does not cancel. The monoid of
// tilt/state.h has no sum of squared weights.
#pragma once

#include <vector>

#include "esscher/base/linalg.h"

namespace esscher::detail {

class PrefixTilt {
 public:
  PrefixTilt(const Vector& a, const Vector& centre, bool covariance);

  // The next n tokens [n,d], row-major.
  void add(const double* tokens, Index n);

  [[nodiscard]] Vector mean() const { return S1_ / S0_; }  // centred
  [[nodiscard]] Matrix cov() const;
  [[nodiscard]] double weights2() const { return S00_ / (S0_ * S0_); }

 private:
  Vector a_, centre_;
  bool covariance_;
  double top_;
  double S0_ = 0, S00_ = 0;
  Vector S1_;
  Matrix S2_;  // on and right of the diagonal
  std::vector<double> work_;
};

}  // namespace esscher::detail
