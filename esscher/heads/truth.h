// Softmax attention of many queries over a prompt that arrives in pieces, with what a diagnosis
// reads besides the output: effective sample size, moments of the scores, the heaviest key.
#pragma once

#include <vector>

#include "esscher/base/linalg.h"

namespace esscher {

class PromptTruth {
 public:
  PromptTruth(Index queries, Index dv);

  // scores [n,queries] and values [n,dv] of keys numbered from first_key; the queries in `active`
  // take part.
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
