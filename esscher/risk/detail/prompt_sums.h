// The three formulas of layer_error.h, one file each. Internal to it.
#pragma once

#include <cstdint>

#include "esscher/risk/layer.h"
#include "esscher/task/token_law.h"

namespace esscher::detail {

// What a softmax head with the tilt a reads of an infinite prompt; the mean of the tokens if there
// is no limit.
Vector centre(const TokenLaw& tokens, const Vector& a);

// One softmax head. *miss is E out - target.
double softmax_error(const Layer& layer, const TokenLaw& tokens, std::int64_t L,
                     const VectorView& z, const VectorView& target, Layer* gradient,
                     Vector* miss = nullptr);

// Softmax heads only, at least one.
double softmax_heads_error(const Layer& layer, const TokenLaw& tokens, std::int64_t L,
                           const VectorView& z, const VectorView& target, Layer* gradient);

// Linear heads only.
double linear_error(const Layer& layer, const SharedMixture& law, std::int64_t L,
                    const VectorView& z, const VectorView& target, Layer* gradient);

}  // namespace esscher::detail
