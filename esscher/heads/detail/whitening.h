// White coordinates of scores: centred = white * up', white = centred * down, on the directions whose
// variance is not rounding, in ascending order of variance.
#pragma once

#include "esscher/base/eigensystem.h"

namespace esscher {

// The eigensystem with signs that rounding does not choose: the weighted sum of the entries of a
// vector, with weights 1, 1/2, 1/3, .., is not negative. What is drawn along eigenvectors is then the
// same sample on every instruction set, up to rounding.
Eigensystem oriented_eigensystem(const MatrixView& symmetric);

struct Whitening {
  Matrix down;  // [q,r]
  Matrix up;    // [q,r]
};

// Of a covariance [q,q].
Whitening whitening(const Matrix& C);

// Rows minus their mean.
Matrix centred_rows(const MatrixView& rows);

}  // namespace esscher
