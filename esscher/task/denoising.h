// In-context denoising of a Gaussian mixture:
//
//   clean x ~ sum_k pi_k N(m_k, gamma^2 I_d),   token and query are x + xi N(0, I),   target x
//
// With S = gamma^2 + xi^2 and r_k(z) ~ pi_k e^{-|z - m_k|^2/2S} the best prediction is
//
//   E[x | z] = sum_k r_k (m_k + (gamma^2/S)(z - m_k)),
//
// and for means of equal norm it is a softmax layer at L = infinity,
//
//   U = I/S,   V = (xi^2/S) I,   W = ((gamma^2 - xi^2)/S) I,
//
// because T = sum_k r_k m_k + z there. W vanishes where gamma = xi.
#pragma once

#include "esscher/task/context.h"
#include "esscher/task/means_law.h"

namespace esscher {

struct DenoisingTask {
  MixtureMeans means;
  Vector weights;    // pi [K] > 0; empty: equal
  double gamma = 1;  // deviation of a clean point about its mean
  double xi = 1;     // deviation of the noise

  // Throws ArgumentError or DimensionError naming the field that is wrong.
  void check() const;
};

ContextTask denoising_task(const DenoisingTask& task);

// E[x | z] and tr Cov(x | z) for given means [K,d].
struct DenoisingPosterior {
  Vector responsibilities;  // r [K]
  Vector mean;              // [d]
  double variance = 0;
};
DenoisingPosterior denoising_posterior(const DenoisingTask& task, const MatrixView& means,
                                       const VectorView& z);

}  // namespace esscher
