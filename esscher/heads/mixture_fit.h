// Gaussian mixtures of keys by expectation-maximisation.
//
//   p(k) = sum_c w_c N(k; m_c, C_c),   C_c = sample covariance + floor * I
//
// The start is found by k-means++ and a few Lloyd steps, several times. Each partition of the keys
// gives a mixture, and EM goes on from the most likely one for as long as the likelihood rises. In
// high dimension nearly every key belongs to one or two components. Most E-steps therefore look
// only at the pairs of key and component that an earlier step found plausible, which is EM on a
// lower bound of the likelihood (Neal and Hinton 1998). A full step decides whether the likelihood
// still rises. The floor keeps every C_c invertible when a component has fewer keys than
// dimensions. The result is a function of the keys and the stream.
#pragma once

#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"

namespace esscher {

struct MixtureFitOptions {
  int restarts = 3;
  int max_iterations = 50;       // EM steps, sparse ones included
  double tolerance = 2e-3;       // per step and key, in nats: a smaller rise is convergence
  double relative_floor = 1e-2;  // floor = this * mean variance of the keys
};

struct MixtureFit {
  Vector weights;             // [k]
  std::vector<Vector> means;  // [k] of [d]
  std::vector<Matrix> covs;   // [k] of [d,d], floor included
  double floor = 0;
  double log_likelihood = 0;  // mean over keys
  int steps = 0;              // EM steps after the start
  bool converged = false;     // the likelihood had stopped rising before max_iterations

  [[nodiscard]] Index size() const { return weights.size(); }
};

// keys [n,d], n >= k >= 1; throws ArgumentError otherwise.
MixtureFit fit_mixture(const MatrixView& keys, Index k, const Stream& stream,
                       const MixtureFitOptions& options = {});

// P(component c | key l) [n,k]; rows sum to 1.
Matrix responsibilities(const MixtureFit& fit, const MatrixView& keys);

}  // namespace esscher
