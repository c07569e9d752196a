// The tail of a window: what stands for the n' keys of a prompt that are not kept. A query reads a
// tail as one key of log-mass A and value T_tail. With a = scale * q, the moments (mK, mV, C, X) of
// the n' keys and values, C = Cov(K), X = Cov(V,K), and tau^2 = a'Ca:
//
//   none      no mass
//   mean      A = log n' + a.mK                T_tail = mV
//   first     A = log n' + a.mK                T_tail = mV + X a
//   gaussian  A = log n' + a.mK + tau^2/2      T_tail = mV + X a
//   finite    A = a.mK + F(n',tau)             T_tail = mV + (M1(n',tau)/tau^2) X a
//   mixture   the sum of Gaussian tails of the components of a mixture
//   rotary    the sum over keys l of one Gaussian key each, whose un-rotated keys R_l^-1 k have these
//             moments (heads/rotary.h)
//
// F and M1 are those of universal/free_energy.h: a finite number of keys has less mass than its
// limit. Scores that deviate by more than kMaxTau are frozen on the largest one, and F and M1 then
// grow like tau.
#pragma once

#include "esscher/base/enum_names.h"
#include "esscher/base/linalg.h"
#include "esscher/universal/score_mixture.h"

namespace esscher {

enum class Tail { none, mean, first, gaussian, finite, mixture, rotary };

constexpr auto enum_names(Tail) {
  return EnumNames<Tail, 7>{"tail",
                            {{{Tail::none, "none"},
                              {Tail::mean, "mean"},
                              {Tail::first, "first"},
                              {Tail::gaussian, "gaussian"},
                              {Tail::finite, "finite"},
                              {Tail::mixture, "mixture"},
                              {Tail::rotary, "rotary"}}}};
}

struct TailValue {
  double log_mass = 0;  // A; -inf for no mass
  Vector value;         // [dv]
};

// The tail of `count` keys whose scores and values have these moments: one component, or those of a
// mixture. For `rotary`, the components are the keys. Scores and values keep their origin.
TailValue tail_value(Tail tail, const ScoreMixture& scores, double count);

// Several masses as one: sum e^{A_i}, and the mean of their values with these weights.
TailValue merge(const TailValue& a, const TailValue& b);

// The numbers that a tail keeps, and its multiply-adds per query.
Index tail_state(Tail tail, Index dk, Index dv, Index components = 1);
Index tail_multiply_adds(Tail tail, Index dk, Index dv, Index components = 1);

}  // namespace esscher
