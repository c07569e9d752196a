// Heads whose keys have a known law.
#pragma once

#include <cmath>
#include <string>

#include "esscher/heads/head.h"
#include "tests/testing.h"

namespace esscher {

// Values that follow the keys plus noise.
inline Matrix values_of(const Matrix& keys, Index dv) {
  return keys * testing::random_matrix(Stream(21, 901), keys.cols(), dv) /
             std::sqrt(static_cast<double>(keys.cols())) +
         0.5 * testing::random_matrix(Stream(21, 902), keys.rows(), dv);
}

inline Head head_of(const std::string& name, const Matrix& keys, double score_deviation,
                    bool causal) {
  const Index d = keys.cols();
  const Matrix queries = testing::random_matrix(Stream(21, 903), causal ? keys.rows() : 128, d) *
                         score_deviation / std::sqrt(static_cast<double>(d));
  return make_head(name, queries, keys, values_of(keys, 5), 1.0, causal);
}

// Four well separated clusters in turn; a mixture with k < 4 cannot describe them.
inline Matrix four_clusters(Index n, Index d) {
  Matrix keys = 0.4 * testing::random_matrix(Stream(21, 31), n, d);
  const Matrix centres = 3.0 * testing::random_matrix(Stream(21, 32), 4, d);
  for (Index l = 0; l < n; ++l) keys.row(l) += centres.row(l * 7 % 4);
  return keys;
}

}  // namespace esscher
