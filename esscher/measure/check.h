// Argument checks that the measures share. Each throws an ArgumentError that starts with `where`.
#pragma once

#include <string_view>

#include "esscher/base/linalg.h"

namespace esscher {

// The tilt a [d] must have the right length (DimensionError otherwise) and finite entries.
void check_tilt(std::string_view where, const VectorView& a, Index dim);

// Returns the dimension, which must be >= 1.
Index checked_dim(std::string_view where, Index dim);

// Returns the value, which must be positive and finite.
double checked_positive(std::string_view where, std::string_view argument, double value);

// Returns the weights [n] divided by their sum. n >= 1; they must be finite, >= 0 and not all zero.
Vector normalised_weights(std::string_view where, std::string_view argument,
                          const VectorView& weights);

// The number of tokens of a sample must be >= 1.
void check_sample_size(std::string_view where, Index n);

}  // namespace esscher
