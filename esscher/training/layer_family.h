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
  // phi of a layer, whose columns that meet the 0 of a query are not looked at. Throws ArgumentError
  // if the layer is not of the family.
  [[nodiscard]] Vector coordinates(const Layer& layer) const;
  // |phi in U_h|^2 - |phi in V_h|^2 for each linear head, which every gradient flow keeps, because
  // outputs do not change under (U_h, V_h) -> (c U_h, V_h/c).
  [[nodiscard]] Vector balances(const VectorView& phi) const;
  // What phi[i] is: a diagonal entry of U, of V, of W, or an entry off their diagonals.
  enum class Role { U, V, W, off };
  [[nodiscard]] Role role(Index i) const { return roles_[static_cast<std::size_t>(i)]; }

 private:
  struct Block {
    Role matrix = Role::W;  // U, V or W
    Index head = 0;         // unless W
  };
  void add(Role role, const Block& block, std::vector<Index> entries);

  LayerFamily family_;
  Layer zero_;
  Index features_ = 0;                       // columns of U and W that a query fills
  std::vector<std::vector<Index>> entries_;  // of Layer::parameters, for each number
  std::vector<Role> roles_;
  std::vector<Block> blocks_;
};

}  // namespace esscher
