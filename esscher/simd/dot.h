// Dot products of a few columns with one column of weights:
//
//   out_r = sum_i y[r * stride + i] w[i],   i < count,   r < columns <= kMostDots
//
// Each sum is made of eight partial sums, i modulo 8, that are added in a fixed order, without fused
// multiply-adds. The bits are therefore the same for every instruction set.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher::simd {

constexpr int kMostDots = 5;

void dot_columns(const double* y, Index stride, int columns, const double* weights, Index count,
                 double* out);

// x'y for count numbers each.
double dot(const double* x, const double* y, Index count);

}  // namespace esscher::simd
