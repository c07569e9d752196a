// Families of layers, as a few free numbers phi:
//
//   scalars   U_h = u_h I, V_h = v_h I, W = w I; for tasks with labels U_h = u_h [[I,0],[0,0]],
//             V_h = (0, v_h), W = 0
//   diagonal  the same with free diagonals of U_h, V_h and W; for labels of U_h without its last
//             entry
//   full      every entry is free; for labels the last columns of U_h and W, which meet the 0 of the
//             query, are not
//
// Each entry of the layer is 0 or one of the numbers, so the gradient in phi is a sum of entries of
// the gradient in the layer.
#pragma once

#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/risk/layer.h"
#include "esscher/task/context.h"

namespace esscher {

enum class LayerFamily { scalars, diagonal, full };

constexpr auto enum_names(LayerFamily) {
  return EnumNames<LayerFamily, 3>{"family of layers",
                                   {{{LayerFamily::scalars, "scalars"},
                                     {LayerFamily::diagonal, "diagonal"},
                                     {LayerFamily::full, "full"}}}};
}

class FamilyMap {
 public:
  // For layers with these kinds of heads.
  FamilyMap(LayerFamily family, const ContextTask& task, const std::vector<ModelKind>& kinds);

  [[nodiscard]] Index size() const { return static_cast<Index>(entries_.size()); }
  [[nodiscard]] Layer layer(const VectorView& phi) const;
  [[nodiscard]] Vector pull_back(const Layer& gradient) const;
  // What phi[i] is: a diagonal entry of U, of V, of W, or an entry off their diagonals.
  enum class Role { U, V, W, off };
  [[nodiscard]] Role role(Index i) const { return roles_[static_cast<std::size_t>(i)]; }

 private:
  void add(Role role, std::vector<Index> entries);

  Layer zero_;
  std::vector<std::vector<Index>> entries_;  // of Layer::parameters, for each number
  std::vector<Role> roles_;
};

}  // namespace esscher
