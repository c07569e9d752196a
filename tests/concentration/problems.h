// What most tests of this folder ask about.
#pragma once

#include "esscher/base/svd.h"
#include "esscher/concentration/study.h"
#include "esscher/measure/gaussian.h"

namespace esscher::testing {

// Tokens and queries N(0, I_d), U = scale I, V = I: lambda = scale^2.
inline Problem gaussian_problem(Index d, double scale) {
  return {Gaussian(Matrix::Identity(d, d)),
          Attention::from_uv(scale * Matrix::Identity(d, d), Matrix::Identity(d, d)),
          AnyMeasure(Gaussian(Matrix::Identity(d, d)))};
}

// m scaled to this spectral norm.
inline Matrix with_norm(const Matrix& m, double norm) { return m * (norm / svd(m).s(0)); }

}  // namespace esscher::testing
