// Normals widened towards rare values that carry an average. A function that grows like
// e^{lambda x^2} is averaged over x ~ N(0,1) far out, where a plain net has few points or none:
//
//   E f(x) = E w f(sqrt(r) x),   w = r^{1/2} e^{-(r - 1) x^2 / 2},   r >= 1
//
// and so in several independent directions. Errors of softmax attention at a query are such
// functions: they grow like e^{tau^2} in the variance tau^2 of the scores until softmax freezes on
// one token. The variances r are 1.5/(1 - 2 lambda), at most 4. They are used in the sharpest
// directions only, as long as E w^2 stays below 3.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

// r [d] for the rates lambda [d], in any order.
Vector widening(const VectorView& lambda);

// The points sqrt(r_j) x_ij [n,d] of normals [n,d] and their weights w_i [n], 1 on average.
struct WidenedNormals {
  Matrix points;
  Vector weights;
};
WidenedNormals widen(const MatrixView& normals, const VectorView& r);

}  // namespace esscher
