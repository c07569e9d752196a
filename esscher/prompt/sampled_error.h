// Mean-square errors of finite Gaussian prompts by the sampled engine.
//
//   output  E|V(zbar - m_a)|^2            grad_v  dv E|zbar - m_a|^2
//   grad_u  |z|^2 E|V(Chat - C_a)|_F^2    grad_k  scale^2 |Qz|^2 E|V(Chat - C_a)|_F^2
//   grad_q  scale^2 |z|^2 E|V(Chat - C_a)K'|_F^2
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "esscher/attention/attention.h"
#include "esscher/attention/metric.h"
#include "esscher/base/estimate.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/random/stream.h"

namespace esscher {

// One Estimate per length (increasing, >= 1); replicate i reads stream.split(i) and serves all
// lengths, so estimates at different lengths are correlated. Same bits for any thread count.
std::vector<Estimate> sampled_mean_square_error(Metric metric, const GaussianMixtureLaw& law,
                                                const Attention& attention, const VectorView& z,
                                                std::span<const std::int64_t> lengths,
                                                std::int64_t replicates, const Stream& stream);

// The same at one length.
Estimate sampled_mean_square_error(Metric metric, const GaussianMixtureLaw& law,
                                   const Attention& attention, const VectorView& z,
                                   std::int64_t length, std::int64_t replicates,
                                   const Stream& stream);

}  // namespace esscher
