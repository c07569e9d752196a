#include "esscher/task/side_by_side.h"

#include <cstddef>
#include <cstdint>
#include <numeric>

#include "esscher/random/draws.h"
#include "esscher/random/normal_sequences.h"

namespace esscher {

SharedMixture SideBySide::law(const Draws& draws, Index j) const {
  const Index K = weights.size(), D = factor.rows();
  Matrix means(K, D);
  for (Index k = 0; k < K; ++k) means.row(k) = draws.means.col(j).segment(k * D, D).transpose();
  return {weights, means, factor * factor.transpose()};
}

ComponentDraws component_draws(const MixtureMeans& means, const Vector& weights, Index more,
                               const Stream& stream, Index first, Index n) {
  const auto prompts = static_cast<std::size_t>(n);
  std::vector<std::uint64_t> sequences(prompts);
  std::iota(sequences.begin(), sequences.end(), static_cast<std::uint64_t>(first));
  Matrix normals(means.normals() + more, n);
  fill_normal_sequences(stream.split(0), sequences,
                        {normals.data(), static_cast<std::size_t>(normals.size())});
  ComponentDraws out{means.side_by_side(normals.topRows(means.normals())),
                     std::vector<Index>(prompts), normals.bottomRows(more), means.cols()};
  std::vector<double> uniforms(prompts);
  stream.split(1).fill_uniform(static_cast<std::uint64_t>(first), uniforms);
  const CategoricalDraw component(weights);
  for (std::size_t j = 0; j < prompts; ++j) out.components[j] = component(uniforms[j]);
  return out;
}

Matrix ComponentDraws::centres() const {
  Matrix out(dim, means.cols());
  for (Index j = 0; j < out.cols(); ++j) {
    const Index k = components[static_cast<std::size_t>(j)];
    for (Index i = 0; i < dim; ++i) out(i, j) = means(k * dim + i, j);
  }
  return out;
}

}  // namespace esscher
