// Convolution of short sequences: out[k] += sum_i a[i] b[k - i].
#pragma once

#include <span>
#include <vector>

namespace esscher::simd {

// out has a.size() + b.size() - 1 elements. Sums run over increasing i for each k.
void convolve_add(std::span<const double> a, std::span<const double> b, std::span<double> out);

// The same for several sequences a, which have one size and share the loads of b. The bits are
// those of one call for each.
void convolve_add(const std::vector<std::span<const double>>& a, std::span<const double> b,
                  const std::vector<std::span<double>>& out);

}  // namespace esscher::simd
