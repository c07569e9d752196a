// Runs of normals side by side: what a loop over prompts draws for each of them. A run is a pure
// function of (seed, stream, first block).
#pragma once

#include <cstdint>
#include <span>

#include "esscher/random/stream.h"

namespace esscher {

// Normals 0 .. n-1 of the runs that begin with these blocks, out [n, runs]: float normals
// (sfc-inl.h) in double.
void fill_runs(const Stream& stream, std::span<const std::uint64_t> first_block,
               std::span<double> out);

}  // namespace esscher
