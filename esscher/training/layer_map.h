// The coordinates theta in which a layer moves, and their map to its matrices. A gradient in theta
// is the pull-back of the gradient in the layer.
//
//   UV     the free numbers of a family (layer_family.h)
//   KQV    W, and of each head K [k,D], Q [k,q], V [m,D]              U = scale K'Q
//   KQVO   W, and of each head K [k,D], Q [k,q], V [D,D], O [m,D]     U = scale K'Q, and O V is read
//
// q columns of a query are not 0 by construction: D of them, or D - 1 for tasks with labels, where
// W has q columns too. theta is the concatenation of the blocks, each row by row. Factors belong to
// the full family.
#pragma once

#include <vector>

#include "esscher/training/layer_family.h"
#include "esscher/training/parametrisation.h"

namespace esscher {

struct LayerFactors {
  ParameterSpace space = ParameterSpace::UV;  // not block
  Index key_dim = 0;                          // k; 0: as many as a token has coordinates
  double score_scale = 1;

  [[nodiscard]] bool is_factored() const { return space != ParameterSpace::UV; }
};

class LayerMap {
 public:
  LayerMap(FamilyMap family);  // NOLINT(google-explicit-constructor): a family is such a map
  // Throws ArgumentError for the space block.
  LayerMap(LayerFactors factors, const ContextTask& task, const std::vector<ModelKind>& kinds);

  [[nodiscard]] Index size() const;
  [[nodiscard]] Layer layer(const VectorView& theta) const;
  [[nodiscard]] Vector pull_back(const VectorView& theta, const Layer& gradient) const;
  // theta of a layer: a balanced factorisation (K K' = Q Q', V V' = O'O) by singular values. Throws
  // ArgumentError if the layer is not of the family or the rank of U is above key_dim.
  [[nodiscard]] Vector coordinates(const Layer& layer) const;
  // The layer whose U are the nearest ones of rank at most key_dim; the same layer without factors.
  [[nodiscard]] Layer nearest(Layer layer) const;
  // What every gradient flow of a risk keeps: K K' - Q Q' and V V' - O'O of each head, and for
  // linear heads |U|^2 - |V|^2 (UV), |K|^2 - |V|^2 (KQV) or |K|^2 - |O|^2 (KQVO) besides.
  [[nodiscard]] Vector conserved(const VectorView& theta) const;
  // Where torch.nn.Linear starts: every entry is uniform on [-c, c], c = 1/sqrt(fan_in), and O,
  // which reads all heads side by side, has fan_in = H D. The residual is 0.
  [[nodiscard]] Vector torch_start(const Stream& stream) const;

 private:
  struct Head;
  [[nodiscard]] Index size_of_head() const;
  [[nodiscard]] Head head(const VectorView& theta, Index h) const;
  void put(const Head& head, Index h, Vector& theta) const;

  FamilyMap family_;
  LayerFactors factors_;
  Layer zero_;
  Index query_ = 0;  // q
};

}  // namespace esscher
