// What statements about laws are tested on: random matrices, and Gaussians as prompts of weighted
// tokens, on which ordinary softmax attention is the integral to rounding error. The trapezoidal rule
// of step kGridStep has the error e^{-2 pi^2 / h^2} = 5e-35.
#pragma once

#include "esscher/measure/empirical.h"
#include "esscher/random/stream.h"

namespace esscher::paper {

inline constexpr double kGridStep = 0.5;
inline constexpr double kGridBeyond = 9.0;  // standard deviations beyond the tilted mean

// N(m, FF') as weighted tokens m + F g, g on the grid kGridStep * integers, |g_i| <= reach.
Empirical grid_prompt(const Vector& m, const Matrix& F, double reach);

// [rows,cols] iid N(0, scale^2)
Matrix random_matrix(const Stream& stream, Index rows, Index cols, double scale);

}  // namespace esscher::paper
