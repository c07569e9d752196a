// White tokens (xi_l, eps_l) of regression prompts, generated in parallel SIMD lanes: xi_l has the
// law of the features, eps_l is normal. The tokens of a prompt are a pure function of (seed,
// stream, block, d, law); token_lanes-inl.h says which words they read.
#pragma once

#include <cstdint>
#include <span>

#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"
#include "esscher/task/regression.h"

namespace esscher {

// Tokens are drawn in blocks of this many (the last one may be shorter), so that a block stays in
// the L1 cache. The block is part of the address of a token.
[[nodiscard]] constexpr Index tokens_per_block(Index d) { return d < 8 ? 64 : 32; }

// The first `tokens` tokens of the prompts that begin with these blocks of the stream, out [tokens *
// (d + 1), prompts]. They are float draws stored as doubles.
void fill_token_lanes(Features features, Index d, Index tokens, const Stream& stream,
                      std::span<const std::uint64_t> first_block, std::span<double> out);

// The same of a mixture of K components with these cumulative probabilities [K - 1]: tokens
// (xi, e_k), d normals and the unit vector of the component, out [tokens * (d + K), prompts].
void fill_mixture_lanes(Index d, std::span<const double> below, Index tokens, const Stream& stream,
                        std::span<const std::uint64_t> first_block, std::span<double> out);

}  // namespace esscher
