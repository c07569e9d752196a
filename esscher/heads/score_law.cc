#include "esscher/heads/detail/score_law.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace esscher {
namespace {

constexpr double kEnd = 5.0;
constexpr double kWidth = 2 * kEnd / kHistogramBins;

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// Shares per bin to a density.
Vector as_density(Vector shares) {
  const double total = shares.sum();
  if (total > 0) shares /= kWidth * total;
  return shares;
}

}  // namespace

Vector score_histogram(const std::vector<Vector>& scores) {
  Vector counts = Vector::Zero(kHistogramBins);
  for (const Vector& s : scores) {
    const double mean = s.mean();
    const double tau = std::sqrt((s.array() - mean).square().mean());
    if (!(tau > 0)) continue;
    for (const double score : s) {
      const auto bin = static_cast<Index>(std::floor(((score - mean) / tau + kEnd) / kWidth));
      if (bin >= 0 && bin < kHistogramBins) counts(bin) += 1;
    }
  }
  return as_density(std::move(counts));
}

Vector score_histogram(const Head& head, const std::vector<PromptResult>& results) {
  const Matrix keys = head.K(0, std::min(head.n, kHeadChunk));
  std::vector<Vector> scores;
  for (const PromptResult& query : results) {
    const Index n = std::min<Index>(keys.rows(), static_cast<Index>(query.n));
    scores.emplace_back(keys.topRows(n) * query.a);
  }
  return score_histogram(scores);
}

Vector score_density(const Surrogate& surrogate, const std::vector<PromptResult>& results) {
  Vector shares = Vector::Zero(kHistogramBins);
  for (const PromptResult& query : results) {
    const Vector means = surrogate.mean_k * query.a;
    Vector variances(surrogate.size());
    for (Index c = 0; c < surrogate.size(); ++c) {
      variances(c) = std::max(0.0, query.a.dot(surrogate.cov_k[c] * query.a));
    }
    const double mean = surrogate.weights.dot(means);
    const double variance =
        surrogate.weights.dot(variances + (means.array() - mean).square().matrix());
    if (!(variance > 0)) continue;
    for (Index c = 0; c < surrogate.size(); ++c) {
      const double deviation = std::sqrt(std::max(variances(c) / variance, 1e-12));
      const double centre = (means(c) - mean) / std::sqrt(variance);
      double below = normal_cdf((-kEnd - centre) / deviation);
      for (Index bin = 0; bin < kHistogramBins; ++bin) {
        const double edge = -kEnd + kWidth * static_cast<double>(bin + 1);
        const double next = normal_cdf((edge - centre) / deviation);
        shares(bin) += surrogate.weights(c) * (next - below);
        below = next;
      }
    }
  }
  return as_density(std::move(shares));
}

}  // namespace esscher
