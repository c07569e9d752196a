// Gaussian mixtures of keys by expectation-maximisation.
//
//   p(k) = sum_c w_c N(k; m_c, C_c),   C_c = sample covariance + floor * I
//
// Starts: k-means++ and a few Lloyd steps, several times; the start whose short EM has the highest
// likelihood is run to convergence. The floor keeps every C_c invertible when a component has fewer
// keys than dimensions. Deterministic for a given stream.
#pragma once

#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"

namespace esscher {

struct MixtureFitOptions {
  int restarts = 3;
  int short_iterations = 1;      // EM steps per start before choosing
  int max_iterations = 6;        // EM steps of the chosen start: more do not move the surrogates
  double tolerance = 1e-3;       // stop when the mean log-likelihood gains less than this
  double relative_floor = 1e-2;  // floor = this * mean variance of the keys
};

struct MixtureFit {
  Vector weights;             // [k]
  std::vector<Vector> means;  // [k] of [d]
  std::vector<Matrix> covs;   // [k] of [d,d], floor included
  double floor = 0;
  double log_likelihood = 0;  // mean over keys

  [[nodiscard]] Index size() const { return weights.size(); }
};

// keys [n,d], n >= k >= 1; throws ArgumentError otherwise.
MixtureFit fit_mixture(const MatrixView& keys, Index k, const Stream& stream,
                       const MixtureFitOptions& options = {});

// P(component c | key l) [n,k]; rows sum to 1.
Matrix responsibilities(const MixtureFit& fit, const MatrixView& keys);

}  // namespace esscher
