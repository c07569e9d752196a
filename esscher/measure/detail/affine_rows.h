// Affine images of tokens, row by row:
//
//   out_l = c + B z_l,   z [n,m], B [p,m], c [p], out [n,p]
//
// Each sum runs over the coordinates of z in their order, without a fused multiply-add. A row
// therefore depends neither on n nor on the instruction set, as a product of matrices would, and
// the prefix of a longer sample is the same in every bit.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher::detail {

Matrix affine_rows(const VectorView& c, const MatrixView& B, const Matrix& z);

}  // namespace esscher::detail
