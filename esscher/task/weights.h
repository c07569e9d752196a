// Probabilities of components, classes and members of a pool.
#pragma once

#include <string_view>

#include "esscher/base/linalg.h"

namespace esscher {

// The given weights divided by their sum, or n equal ones if there are none.
Vector equal_unless_given(const Vector& weights, Index n);

// Throws DimensionError or ArgumentError unless these are n positive numbers.
void check_weights(std::string_view where, const Vector& weights, Index n);

}  // namespace esscher
