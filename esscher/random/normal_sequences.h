// Independent sequences of normals, one per prompt of a batch, generated in parallel SIMD
// lanes. A sequence is a pure function of (seed, stream, first block).
#pragma once

#include <cstdint>
#include <span>

#include "esscher/random/stream.h"

namespace esscher {

// Normals 0 .. n-1 of the sequences that begin with these blocks, out [n, sequences]. They are
// float normals (sfc-inl.h) stored as doubles.
void fill_normal_sequences(const Stream& stream, std::span<const std::uint64_t> first_block,
                           std::span<double> out);

}  // namespace esscher
