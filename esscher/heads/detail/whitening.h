// White coordinates of scores: centred = white * up', white = centred * down, on the directions whose
// variance is not rounding, in ascending order of variance.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

struct Whitening {
  Matrix down;  // [q,r]
  Matrix up;    // [q,r]
};

// Of a covariance [q,q].
Whitening whitening(const Matrix& C);

// Rows minus their mean.
Matrix centred_rows(const MatrixView& rows);

}  // namespace esscher
