// Sobol points, scrambled at random. Every point is uniform, so averages over such a net are unbiased,
// and the spread over independent scramblings shows their error. Two kinds of scrambling have the same
// mean square error:
//
//   linear   a random linear matrix and a digital shift (Matousek 1998). A smooth function of a few
//            variables is mostly averaged far better than that, and seldom far worse (Pan and Owen
//            2023): good for one net that is used for long.
//   nested   every digit is flipped at random in each interval of the digits before it (Owen 1995).
//            Averages are nearly normal (Loh 2003), so that a few nets tell their error.
#pragma once

#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"

namespace esscher {

enum class Scrambling { linear, nested };

// 2^m points in (0,1)^dims  [2^m, dims]; every coordinate has exactly one point in each of the 2^m
// intervals of width 2^-m. dims <= 1000, m <= 30.
inline constexpr Index kMaxSobolDims = 1000;
Matrix scrambled_sobol(Index dims, int m, const Stream& stream,
                       Scrambling scrambling = Scrambling::linear);

// The same points mapped by the inverse normal distribution function: N(0, I) in R^dims.
Matrix sobol_normals(Index dims, int m, const Stream& stream,
                     Scrambling scrambling = Scrambling::linear);

}  // namespace esscher
