// Far scores (measure/score_law.h) in prompts of groups. Nodes describe prompts without a far token;
// in the others the largest far token has all the weight:
//
//   P(no far token)                = prod_k (1 - mass_k)^{n_k}
//   P(token of k at x, the largest) = n_k p(x) prod_l (1 - above_l(x))^{n_l - [l=k]}
//
// What this leaves out are prompts where two scores near or beyond `from` are close to each other.
// Their share of E|sum omega x|^2 is about n density/from. Internal to group_integrals.cc.
#pragma once

#include <vector>

#include "esscher/prompt/group_integrals.h"

namespace esscher::detail {

struct FarPart {
  const FarScores* far;
  std::size_t at;  // place among the segments
  double bias, n;
  double top;  // of its nodes, with the bias
};

// Turns moments over prompts without far tokens into moments over all. `given` is the largest
// log-weight of a given token. CapabilityError where the share above is not below 1e-8, or where a
// given token has the weight of far ones.
void add_far_tokens(const std::vector<FarPart>& parts, double given, GroupMoments& moments);

}  // namespace esscher::detail
