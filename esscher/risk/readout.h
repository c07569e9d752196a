// What a prediction reads of one attention head, and the maps from trained parameters to it.
//
//   a = U (x, 0),   prediction = r' zbar,   r = last row of V,   zbar = mean of the prompt tilted
//   by a
//
// Nothing else of V acts, so a risk is a function of (U, r) and a gradient in any parametrisation
// is the pull-back of the gradient in (U, r).
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <string_view>

#include "esscher/base/linalg.h"
#include "esscher/json/json.h"

namespace esscher {

struct Readout {
  Matrix U;  // [D,D], D = d + 1
  Vector r;  // [D]

  static Readout zero(Index D) { return {Matrix::Zero(D, D), Vector::Zero(D)}; }
  [[nodiscard]] Index dim() const { return r.size(); }
  [[nodiscard]] double norm() const { return std::sqrt(U.squaredNorm() + r.squaredNorm()); }
};

// A differentiable risk: its value at (U, r); the gradient is overwritten when asked for.
using RiskFunction = std::function<double(const Readout& at, Readout* gradient)>;

// Parameter spaces of a gradient flow; theta is the concatenation of the blocks, row by row.
//   block  A [d,d], b           U = [[A,0],[0,0]], r = (0,b)           ([BB26] eq. 9, [ZFB24])
//   UV     U [D,D], r [D]
//   KQV    K [k,D], Q [k,D], r [D]                     U = scale K'Q
//   KQVO   K [k,D], Q [k,D], V [D,D], O [D]            U = scale K'Q, r = V'O
enum class ParameterSpace { block, UV, KQV, KQVO };

std::string_view name(ParameterSpace space);
ParameterSpace parse_parameter_space(const std::string& text);

struct Parametrisation {
  ParameterSpace space = ParameterSpace::UV;
  Index token_dim = 2;     // D = d + 1
  Index key_dim = 2;       // k, for KQV and KQVO
  double score_scale = 1;  // for KQV and KQVO

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
  // {"K": [[..]], ..}: the blocks of theta by name.
  [[nodiscard]] Json blocks(const VectorView& theta) const;
};

// theta with this readout: exact for UV; for block the readout must be of block form; for KQV(O)
// a balanced factorisation (K K' = Q Q', V V' = O O') by singular values, which needs key_dim >=
// rank of U. Throws ArgumentError otherwise.
Vector parameters_of(const Parametrisation& space, const Readout& readout);

}  // namespace esscher
