// The two formulas of layer_error.h, one file each. Internal to it.
#pragma once

#include <cstdint>

#include "esscher/risk/layer.h"
#include "esscher/task/token_law.h"

namespace esscher::detail {

// One softmax head.
double softmax_error(const Layer& layer, const TokenLaw& tokens, std::int64_t L,
                     const VectorView& z, const VectorView& target, Layer* gradient);

// Linear heads only.
double linear_error(const Layer& layer, const SharedMixture& law, std::int64_t L,
                    const VectorView& z, const VectorView& target, Layer* gradient);

}  // namespace esscher::detail
