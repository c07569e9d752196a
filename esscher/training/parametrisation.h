// The coordinates theta in which a head is trained, and their map to what a prediction reads, (U,
// r). A gradient in theta is the pull-back of the gradient in (U, r).
//
//   block  A [d,d], b                          U = [[A,0],[0,0]], r = (0,b)    ([BB26] eq. 9, [ZFB24])
//   UV     U [D,D], r [D]
//   KQV    K [k,D], Q [k,D], r [D]             U = scale K'Q
//   KQVO   K [k,D], Q [k,D], V [D,D], O [D]    U = scale K'Q, r = V'O
//
// theta is the concatenation of the blocks, each row by row.
#pragma once

#include "esscher/base/enum_names.h"
#include "esscher/risk/readout.h"

namespace esscher {

enum class ParameterSpace { block, UV, KQV, KQVO };

constexpr auto enum_names(ParameterSpace) {
  return EnumNames<ParameterSpace, 4>{"parametrisation",
                                      {{{ParameterSpace::block, "block"},
                                        {ParameterSpace::UV, "UV"},
                                        {ParameterSpace::KQV, "KQV"},
                                        {ParameterSpace::KQVO, "KQVO"}}}};
}

struct Parametrisation {
  ParameterSpace space = ParameterSpace::UV;
  Index token_dim = 2;     // D = d + 1
  Index key_dim = 2;       // k, for KQV and KQVO
  double score_scale = 1;  // for KQV and KQVO

  [[nodiscard]] bool is_factored() const {
    return space == ParameterSpace::KQV || space == ParameterSpace::KQVO;
  }
  [[nodiscard]] Index size() const;  // number of entries of theta
  [[nodiscard]] Readout readout(const VectorView& theta) const;
  // d(risk)/d(theta) from d(risk)/d(U, r).
  [[nodiscard]] Vector pull_back(const VectorView& theta, const Readout& gradient) const;
  // What every gradient flow of a risk keeps, whatever the risk: K K' - Q Q' and V V' - O O',
  // row by row; empty for block and UV.
  [[nodiscard]] Vector conserved(const VectorView& theta) const;
  // What the flow keeps besides, when the risk does not change under (U, r) -> (cU, r/c), as at
  // L = infinity with Gaussian tokens and for linear attention: |U|_F^2 - |r|^2 in the spaces
  // block and UV; in KQV |K|_F^2 - |r|^2; in KQVO |K|_F^2 - |O|^2.
  [[nodiscard]] double scale_balance(const VectorView& theta) const;
};

// theta with this readout: exact for UV; for block the readout must be of block form; for KQV(O)
// a balanced factorisation (K K' = Q Q', V V' = O O') by singular values, which needs key_dim >=
// rank of U. Throws ArgumentError otherwise.
Vector parameters_of(const Parametrisation& space, const Readout& readout);

}  // namespace esscher
