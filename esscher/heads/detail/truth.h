// The true softmax output of many queries over a prompt that arrives in pieces, and what a
// diagnosis reads beside it: effective sample size, moments of the scores, the heaviest key.
//
//   T = sum_l e^{s_l - top} v_l / sum_l e^{s_l - top},   top = max_l s_l so far
//
// No weight exceeds 1, so nothing overflows; the sums are rescaled when the maximum rises.
#pragma once

#include <vector>

#include "esscher/base/linalg.h"

namespace esscher {

class PromptTruth {
 public:
  PromptTruth(Index queries, Index dv);

  // Adds scores [n,queries] and values [n,dv] of the keys numbered from first_key to the sums of
  // the queries in `active`.
  void add(const MatrixView& scores, const MatrixView& values, const std::vector<Index>& active,
           Index first_key);

  [[nodiscard]] Vector output(Index query) const;  // [dv]
  [[nodiscard]] double effective_sample_size(Index query) const;
  [[nodiscard]] double score_variance(Index query) const;
  [[nodiscard]] double score_kurtosis(Index query) const;  // 3 where the scores are constant
  [[nodiscard]] double top_weight(Index query) const;
  [[nodiscard]] Index top_key(Index query) const;
  [[nodiscard]] double count(Index query) const { return sums_[query].n; }

 private:
  struct Sums {
    double n = 0;
    double top = 0;  // largest score so far
    Index top_key = -1;
    double w = 0, w2 = 0;                   // sum of weights e^{s - top} and of their squares
    double s1 = 0, s2 = 0, s3 = 0, s4 = 0;  // power sums of the scores
  };

  [[nodiscard]] double mean(Index query) const { return sums_[query].s1 / sums_[query].n; }

  std::vector<Sums> sums_;
  Matrix wv_;  // [queries,dv] sum of e^{s - top} v
};

}  // namespace esscher
