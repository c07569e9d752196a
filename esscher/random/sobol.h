// Sobol points with a random linear matrix scramble and digital shift (Matousek 1998). Every point
// is uniform, so averages over such a net are unbiased. They are as accurate as with Owen's
// scrambling, and the spread over independent scramblings shows their error.
#pragma once

#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"

namespace esscher {

// 2^m points in (0,1)^dims  [2^m, dims]; every coordinate has exactly one point in each of the 2^m
// intervals of width 2^-m. dims <= 1000, m <= 30.
inline constexpr Index kMaxSobolDims = 1000;
Matrix scrambled_sobol(Index dims, int m, const Stream& stream);

// The same points mapped by the inverse normal distribution function: N(0, I) in R^dims.
Matrix sobol_normals(Index dims, int m, const Stream& stream);

}  // namespace esscher
