#include "esscher/training/layer_family.h"

#include <utility>

namespace esscher {

void FamilyMap::add(Role role, std::vector<Index> entries) {
  entries_.push_back(std::move(entries));
  roles_.push_back(role);
}

FamilyMap::FamilyMap(LayerFamily family, const ContextTask& task,
                     const std::vector<ModelKind>& kinds) {
  const Index D = task.token_dim, m = task.out_dim;
  const bool labels = m < D;
  const Index features = labels ? D - 1 : D;  // what the query fills
  zero_.W = Matrix::Zero(m, D);
  for (const ModelKind kind : kinds) {
    zero_.heads.push_back({kind, Matrix::Zero(D, D), Matrix::Zero(m, D)});
  }
  // A block [rows,D] of the parameters; its diagonal ends in the last column.
  Index start = 0;
  const auto block = [&](Role role, Index rows, Index cols) {
    const Index shift = D - rows;  // of the diagonal of the last rows of a square matrix
    std::vector<Index> diagonal;
    for (Index i = 0; i < rows; ++i) {
      if (i + shift < cols) diagonal.push_back(start + i * D + i + shift);
    }
    if (family == LayerFamily::scalars && !diagonal.empty()) add(role, diagonal);
    if (family == LayerFamily::diagonal) {
      for (const Index at : diagonal) add(role, {at});
    }
    if (family == LayerFamily::full) {
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < cols; ++j) {
          add(j == i + shift ? role : Role::off, {start + i * D + j});
        }
      }
    }
    start += rows * D;
  };
  block(Role::W, m, features);
  for (std::size_t h = 0; h < kinds.size(); ++h) {
    block(Role::U, D, features);
    block(Role::V, m, D);
  }
}

Layer FamilyMap::layer(const VectorView& phi) const {
  Vector theta = zero_.parameters();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    for (const Index at : entries_[i]) theta[at] = phi[static_cast<Index>(i)];
  }
  return zero_.with(theta);
}

Vector FamilyMap::pull_back(const Layer& gradient) const {
  const Vector theta = gradient.parameters();
  Vector out = Vector::Zero(size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    for (const Index at : entries_[i]) out[static_cast<Index>(i)] += theta[at];
  }
  return out;
}

}  // namespace esscher
