// Convolution of short sequences: out[k] += sum_i a[i] b[k - i].
#pragma once

#include <span>

namespace esscher::simd {

// out has a.size() + b.size() - 1 elements. Sums run over increasing i for each k.
void convolve_add(std::span<const double> a, std::span<const double> b, std::span<double> out);

}  // namespace esscher::simd
