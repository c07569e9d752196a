#include "esscher/prompt/sampled_error.h"

#include <cmath>
#include <string>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/prompt/sampled_prompt.h"

namespace esscher {
namespace {

double square_error(Metric metric, const Attention& attention, const VectorView& z,
                    const SampledDraw& draw, const SampledDraw& limit) {
  switch (metric) {
    case Metric::output: return (attention.V() * (draw.zbar - limit.zbar)).squaredNorm();
    case Metric::grad_v:
      return static_cast<double>(attention.output_dim()) * (draw.zbar - limit.zbar).squaredNorm();
    case Metric::grad_u: return z.squaredNorm() * (draw.CR - limit.CR).squaredNorm();
    case Metric::grad_k: {
      const double scale = attention.scale();
      return scale * scale * (attention.Q() * z).squaredNorm() * (draw.CR - limit.CR).squaredNorm();
    }
    case Metric::grad_q: {
      const double scale = attention.scale();
      return scale * scale * z.squaredNorm() * (attention.K() * (draw.CR - limit.CR)).squaredNorm();
    }
  }
  return 0;
}

}  // namespace

std::vector<Estimate> sampled_mean_square_error(Metric metric, const GaussianMixtureLaw& law,
                                                const Attention& attention, const VectorView& z,
                                                std::span<const std::int64_t> lengths,
                                                std::int64_t replicates, const Stream& stream) {
  if (replicates < 2) {
    throw_argument("sampled_mean_square_error", "replicates", std::to_string(replicates),
                   "an integer >= 2");
  }
  const bool gradient = metric != Metric::output && metric != Metric::grad_v;
  const Matrix R = gradient ? Matrix(attention.V().transpose()) : Matrix(attention.dim(), 0);
  const SampledPrompt prompt(law, attention.tilt(z), R);
  const SampledDraw limit = prompt.limit();
  const auto n = static_cast<Index>(lengths.size());
  Matrix errors(replicates, n);
  parallel_for(replicates, [&](std::int64_t i) {
    const auto draws = prompt.draw(lengths, stream.split(static_cast<std::uint64_t>(i)));
    for (Index j = 0; j < n; ++j) {
      errors(i, j) = square_error(metric, attention, z, draws[static_cast<std::size_t>(j)], limit);
    }
  });
  std::vector<Estimate> estimates;
  const auto count = static_cast<double>(replicates);
  for (Index j = 0; j < n; ++j) {
    const double mean = errors.col(j).mean();
    const double variance = (errors.col(j).array() - mean).square().sum() / (count - 1);
    estimates.push_back({mean, std::sqrt(variance / count), replicates, Engine::sampled});
  }
  return estimates;
}

Estimate sampled_mean_square_error(Metric metric, const GaussianMixtureLaw& law,
                                   const Attention& attention, const VectorView& z,
                                   std::int64_t length, std::int64_t replicates,
                                   const Stream& stream) {
  const std::int64_t one[] = {length};
  return sampled_mean_square_error(metric, law, attention, z, one, replicates, stream).front();
}

}  // namespace esscher
