#include "esscher/heads/detail/truth.h"

#include <algorithm>
#include <cmath>

#include "esscher/simd/gemm.h"

namespace esscher {

PromptTruth::PromptTruth(Index queries, Index dv)
    : sums_(queries), wv_(Matrix::Zero(queries, dv)) {}

void PromptTruth::add(const MatrixView& scores, const MatrixView& values,
                      const std::vector<Index>& active, Index first_key) {
  const Index n = scores.rows();
  if (n == 0) return;
  Matrix weights = Matrix::Zero(n, wv_.rows());
  for (const Index i : active) {
    Sums& sums = sums_[i];
    Index at = 0;
    const double top = scores.col(i).maxCoeff(&at);
    if (sums.n == 0 || top > sums.top) {
      const double shrink = sums.n == 0 ? 0.0 : std::exp(sums.top - top);
      sums.w *= shrink;
      sums.w2 *= shrink * shrink;
      wv_.row(i) *= shrink;
      sums.top = top;
      sums.top_key = first_key + at;
    }
    for (Index l = 0; l < n; ++l) {
      const double s = scores(l, i);
      const double weight = std::exp(s - sums.top);
      weights(l, i) = weight;
      sums.w += weight;
      sums.w2 += weight * weight;
      sums.s1 += s;
      sums.s2 += s * s;
      sums.s3 += s * s * s;
      sums.s4 += s * s * s * s;
    }
    sums.n += static_cast<double>(n);
  }
  add_gram(weights, values, wv_);
}

Vector PromptTruth::output(Index query) const { return wv_.row(query) / sums_[query].w; }

double PromptTruth::effective_sample_size(Index query) const {
  return sums_[query].w * sums_[query].w / sums_[query].w2;
}

double PromptTruth::score_variance(Index query) const {
  const double m = mean(query);
  return std::max(0.0, sums_[query].s2 / sums_[query].n - m * m);
}

double PromptTruth::score_kurtosis(Index query) const {
  const Sums& sums = sums_[query];
  const double m = mean(query);
  const double variance = score_variance(query);
  if (!(variance > 1e-14 * (sums.s2 / sums.n))) return 3.0;
  const double fourth = sums.s4 / sums.n - 4 * m * sums.s3 / sums.n + 6 * m * m * sums.s2 / sums.n -
                        3 * m * m * m * m;
  return fourth / (variance * variance);
}

double PromptTruth::top_weight(Index query) const { return 1.0 / sums_[query].w; }
Index PromptTruth::top_key(Index query) const { return sums_[query].top_key; }

}  // namespace esscher
