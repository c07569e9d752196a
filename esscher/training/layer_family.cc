#include "esscher/training/layer_family.h"

#include <string>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {

void FamilyMap::add(Role role, const Block& block, std::vector<Index> entries) {
  entries_.push_back(std::move(entries));
  roles_.push_back(role);
  blocks_.push_back(block);
}

FamilyMap::FamilyMap(LayerFamily family, const ContextTask& task,
                     const std::vector<ModelKind>& kinds)
    : family_(family) {
  const Index D = task.token_dim, m = task.out_dim;
  const bool labels = m < D;
  features_ = labels ? D - 1 : D;
  zero_.W = Matrix::Zero(m, D);
  for (const ModelKind kind : kinds) {
    zero_.heads.push_back({kind, Matrix::Zero(D, D), Matrix::Zero(m, D)});
  }
  // A block [rows,D] of the parameters; its diagonal ends in the last column.
  Index start = 0;
  const auto block = [&](Role role, Index head, Index rows, Index cols) {
    const Block own{role, head};
    const Index shift = D - rows;  // of the diagonal of the last rows of a square matrix
    std::vector<Index> diagonal;
    for (Index i = 0; i < rows; ++i) {
      if (i + shift < cols) diagonal.push_back(start + i * D + i + shift);
    }
    if (family == LayerFamily::scalars && !diagonal.empty()) add(role, own, diagonal);
    if (family == LayerFamily::diagonal) {
      for (const Index at : diagonal) add(role, own, {at});
    }
    if (family == LayerFamily::full) {
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < cols; ++j) {
          add(j == i + shift ? role : Role::off, own, {start + i * D + j});
        }
      }
    }
    start += rows * D;
  };
  block(Role::W, 0, m, features_);
  for (Index h = 0; h < static_cast<Index>(kinds.size()); ++h) {
    block(Role::U, h, D, features_);
    block(Role::V, h, m, D);
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

Vector FamilyMap::coordinates(const Layer& layer) const {
  layer.check(zero_.token_dim(), zero_.out_dim());
  check_dimension("layer", "heads", static_cast<Index>(layer.heads.size()),
                  static_cast<Index>(zero_.heads.size()));
  Layer acting = layer;
  const Index dead = layer.token_dim() - features_;
  acting.W.rightCols(dead).setZero();
  for (LayerHead& head : acting.heads) head.U.rightCols(dead).setZero();
  const Vector theta = acting.parameters();
  Vector phi(size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    phi[static_cast<Index>(i)] = theta[entries_[i].front()];
  }
  if (this->layer(phi).parameters() != theta) {
    throw ArgumentError("layer: its matrices are not of the family \"" +
                        std::string(name(family_)) + "\"; family \"full\" has every layer");
  }
  return phi;
}

Vector FamilyMap::balances(const VectorView& phi) const {
  Vector of_head = Vector::Zero(static_cast<Index>(zero_.heads.size()));
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const double square = phi[static_cast<Index>(i)] * phi[static_cast<Index>(i)];
    if (blocks_[i].matrix == Role::U) of_head[blocks_[i].head] += square;
    if (blocks_[i].matrix == Role::V) of_head[blocks_[i].head] -= square;
  }
  std::vector<double> linear;
  for (std::size_t h = 0; h < zero_.heads.size(); ++h) {
    if (zero_.heads[h].kind == ModelKind::linear) linear.push_back(of_head[static_cast<Index>(h)]);
  }
  return Vector::Map(linear.data(), static_cast<Index>(linear.size()));
}

}  // namespace esscher
