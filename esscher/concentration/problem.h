// What a concentration study is about: tokens, an operator, and queries.
#pragma once

#include <optional>

#include "esscher/attention/attention.h"
#include "esscher/measure/any_measure.h"

namespace esscher {

// The law of queries, or queries given as points [n,d]; one of the two.
struct Problem {
  AnyMeasure mu;
  Attention attention;
  std::optional<AnyMeasure> nu = {};
  Matrix points = {};
};

}  // namespace esscher
