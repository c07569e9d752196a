// Expectations over prompts that are lists of groups, without sampling. Group k has n_k tokens of a
// score law (measure/score_law.h), each with the log-weight b_k added to its score; a given token is
// a group of one, with phi = e^-y. With y = t e^{b+s}, t = e^u, phi = E e^-y and averages E_q under
// q ~ p e^-y / phi:
//
//   E sum omega x      = int P sum_k n_k E_q[yx] du                     P = prod_k phi_k^{n_k}
//   E|sum omega x|^2   = int P { sum_k n_k (E_q[y^2|x|^2] - |E_q[yx]|^2) + |sum_k n_k E_q[yx]|^2 } du
//   E sum omega^2      = int P sum_k n_k E_q[y^2] du
//   E weight of k      = int P n_k E_q[y] du
//   E log sum e^{b+s}  = -gamma - int u P sum_k n_k E_q[y] du
//   E sum omega (b+s)  = int P sum_k n_k E_q[y (log y - u)] du          entropy = the difference
//
// This is the Laplace representation of universal/universal.h, where log P = sum n_k log1p(-psi_k).
// The trapezoidal rule in u has step 1/4 or a little less; laws with long tails have panels, in the
// tails of log|u| (prompt/detail/tail_sweep.h). Where every y is small, E_q[yx] is its
// linear part e^{u+b} E[e^s x] and a rest that is computed by itself; the linear part of the whole
// prompt is dropped where it is nothing but rounding, as for a plain prompt centred at its limit.
//
// Contract: 1e-10 relative to the size of x for all answers, and relative to the answer itself for
// the square, E sum omega^2 and weights above 1e-13. The bias of a plain prompt holds 1e-9 + 1e-15/tau
// relative, tau the deviation of the scores, that of several groups 1e-12 absolute in units of x. With
// long tails (Student) all hold 1e-10 relative to the size of x. `error` is the defect of E sum omega = 1.
// The cost does not grow with the counts. Values at nodes are kept, so further lengths are cheap and
// one object serves one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "esscher/measure/score_law.h"

namespace esscher {

// Tokens of one law. Token l = 0 .. count-1 has the log-weight bias - slope (from + l).
struct GroupSegment {
  std::size_t law = 0;
  double bias = 0;
  std::int64_t count = 0;
  std::int64_t from = 0;  // its first distance; read only where the slope is positive
};

// Tokens that are given, each with its score and bias as one log-weight (-infinity: none), and x.
struct GivenTokens {
  Vector log_weight;  // [m]
  Matrix x;           // [m,dv]
};

struct GroupMoments {
  Vector mean;           // E sum omega x [dv]
  double square = 0;     // E|sum omega x|^2
  double weights2 = 0;   // E sum omega^2
  Vector weights;        // [segments] expected total weight of each segment
  Vector given;          // [m] expected weight of each given token
  double log_total = 0;  // E log sum e^{b+s}
  double entropy = 0;    // E[-sum omega log omega]
  double error = 0;
};

class GroupIntegrals {
 public:
  // All laws read values of width dv about one centre.
  GroupIntegrals(std::vector<ScoreLaw> laws, Index dv);
  ~GroupIntegrals();
  GroupIntegrals(GroupIntegrals&&) noexcept;
  GroupIntegrals& operator=(GroupIntegrals&&) noexcept;

  // At least one token must have a finite log-weight (ArgumentError). Segments with bias -infinity
  // or count 0 weigh nothing. A positive slope may not be below kMinSlope (CapabilityError).
  static constexpr double kMinSlope = 1e-3;
  GroupMoments at(const std::vector<GroupSegment>& segments, const GivenTokens& given,
                  double slope = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace esscher
