// A small prompt to keep in few numbers, one query, and the softmax that methods are compared with.
#pragma once

#include <cmath>

#include "esscher/heads/compress.h"
#include "tests/testing.h"

namespace esscher {

inline constexpr Index kDk = 4, kDv = 3, kPair = kDk + kDv;

inline CompressInput some_input(Index n) {
  return {.keys = testing::random_matrix(Stream(71, 1), n, kDk).array() + 0.2,
          .values = testing::random_matrix(Stream(71, 2), n, kDv).array() + 0.5,
          .calibration = testing::random_matrix(Stream(71, 3), 30, kDk, 0.8),
          .sinks = 1};
}

inline const Vector& some_query() {
  static const Vector a = testing::random_matrix(Stream(71, 4), kDk, 1, 0.8);
  return a;
}

inline Vector softmax_output(const CompressInput& x, const Vector& a) {
  double mass = 0;
  Vector T = Vector::Zero(kDv);
  for (Index l = 0; l < x.keys.rows(); ++l) {
    const double w = std::exp(x.keys.row(l).dot(a));
    mass += w;
    T += w * x.values.row(l).transpose();
  }
  return T / mass;
}

}  // namespace esscher
