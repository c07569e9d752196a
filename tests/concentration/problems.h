// The problem most tests of this folder ask about.
#pragma once

#include "esscher/concentration/study.h"
#include "esscher/measure/gaussian.h"

namespace esscher::testing {

// Tokens and queries N(0, I_d), U = scale I, V = I: lambda = scale^2.
inline Problem gaussian_problem(Index d, double scale) {
  return {Gaussian(Matrix::Identity(d, d)),
          Attention::from_uv(scale * Matrix::Identity(d, d), Matrix::Identity(d, d)),
          AnyMeasure(Gaussian(Matrix::Identity(d, d)))};
}

}  // namespace esscher::testing
