// What one token of a law with long tails (measure/long_tail.h) contributes at v = -x, where x lies in
// the tails. With y = e^{s - x} and a density p that changes little over a score of 1,
//
//   E[y^j e^-y f] = int p(s) f(s) e^{j(s-x)} e^{-e^{s-x}} ds
//
// is a Gauss rule of eight nodes for the weight e^{jv - e^v}; E e^-y is the same average of P(S < s),
// j = 1. Internal to token_nodes.cc.
#pragma once

#include "esscher/measure/long_tail.h"
#include "esscher/prompt/detail/token_nodes.h"

namespace esscher::detail {

TokenAt tail_token(const LongTails& tails, double x);

}  // namespace esscher::detail
