// Where the means of a mixture come from: given once, or drawn anew for every prompt.
//
//   fixed     the given ones
//   gaussian  iid N(0, scale^2 I)
//   sphere    iid uniform on the sphere of radius scale
#pragma once

#include "esscher/base/enum_names.h"
#include "esscher/base/linalg.h"

namespace esscher {

enum class MeansLaw { fixed, gaussian, sphere };

constexpr auto enum_names(MeansLaw) {
  return EnumNames<MeansLaw, 3>{"law of the means",
                                {{{MeansLaw::fixed, "fixed"},
                                  {MeansLaw::gaussian, "gaussian"},
                                  {MeansLaw::sphere, "sphere"}}}};
}

struct MixtureMeans {
  MeansLaw law = MeansLaw::fixed;
  Matrix fixed;      // [K,d], of law fixed
  Index count = 2;   // K, of the others
  Index dim = 1;     // d, of the others
  double scale = 1;  // of the others

  [[nodiscard]] bool is_fixed() const { return law == MeansLaw::fixed; }
  [[nodiscard]] Index rows() const { return is_fixed() ? fixed.rows() : count; }
  [[nodiscard]] Index cols() const { return is_fixed() ? fixed.cols() : dim; }
  [[nodiscard]] Index normals() const { return is_fixed() ? 0 : count * dim; }
  [[nodiscard]] Matrix at(const VectorView& normals) const;  // [K,d] from normals() of them
  // The same of n prompts: means [K d,n], mean k in rows k d .. k d + d - 1, from normals
  // [normals(),n].
  [[nodiscard]] Matrix side_by_side(const MatrixView& normals) const;
  [[nodiscard]] double variance() const;  // E m m' = variance I where means are drawn
  // Throws ArgumentError naming what is wrong.
  void check() const;
};

}  // namespace esscher
