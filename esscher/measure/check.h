// Argument checks shared by the measures.
#pragma once

#include <string_view>

#include "esscher/base/linalg.h"

namespace esscher {

// The tilt a [d]: right length, finite entries.
void check_tilt(std::string_view where, const VectorView& a, Index dim);

// A dimension >= 1, returned.
Index checked_dim(std::string_view where, Index dim);

// A positive finite number, returned.
double checked_positive(std::string_view where, std::string_view argument, double value);

// Weights [n], n >= 1, finite, none negative, not all zero; returned divided by their sum.
Vector normalised_weights(std::string_view where, std::string_view argument,
                          const VectorView& weights);

// A number of tokens >= 0 that fits a matrix [n, dim].
void check_sample_size(std::string_view where, Index n);

}  // namespace esscher
