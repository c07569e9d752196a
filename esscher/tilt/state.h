// The streaming accumulator of an exponentially tilted sum: a monoid.
//
// Tokens x_l [d] have scores s_l and, on request, scalars t_l = <r, .>. With M = max s_l,
//
//   norm    N  = sum e^{s_l - M}                    in [1, count], cannot overflow
//   sum     S  = sum e^{s_l - M} x_l        [d]     tilted mean = S / N
//   t_sum   F  = sum e^{s_l - M} t_l                tilted mean of t, f = F / N
//   product P  = sum e^{s_l - M} (t_l - f)(x_l - S/N)    [d]     covariance of x and t, times N
//   second  C  = sum e^{s_l - M} (x_l - S/N)(x_l - S/N)' [d,d]   covariance of x, times N
//
// Merging rescales both sides to the larger M, by factors <= 1, and adds them. The centred moments
// gain the term (N_a N_b / N)(f_a - f_b)(S_a/N_a - S_b/N_b) between the parts, so nothing large is
// ever subtracted. Merging with the neutral state is exact on both sides; merging is associative
// and commutative up to rounding. Tokens with score -inf are counted but weigh nothing.
#pragma once

#include <cstdint>
#include <limits>

#include "esscher/base/linalg.h"

namespace esscher {

struct TiltState {
  double max = -std::numeric_limits<double>::infinity();
  double norm = 0;
  double t_sum = 0;
  Vector sum;              // [d]
  Vector product;          // [d], or size 0: not requested
  Matrix second;           // [d,d], or size 0: not requested
  std::int64_t count = 0;  // tokens seen, masked ones too

  static TiltState neutral(Index d, bool with_product = false, bool with_second = false);

  Index dim() const { return sum.size(); }
  bool empty() const { return norm == 0; }  // no token, or masked ones only

  // All of these throw DomainError on an empty state, which has no tilt.
  Vector mean() const;          // [d] zbar
  double log_sum_exp() const;   // log sum_l e^{s_l}
  double t_mean() const;        // f
  Vector product_mean() const;  // [d] sum omega (t - f)(x - zbar): C_hat r when t = <r,x>
  Matrix covariance() const;    // [d,d]
};

// left becomes the merge of both. Both must have the same d and the same requests.
void merge(TiltState& left, const TiltState& right);

struct MergeTiltStates {
  void operator()(TiltState& left, const TiltState& right) const { merge(left, right); }
};

}  // namespace esscher
