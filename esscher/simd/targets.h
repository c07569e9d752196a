// CPU variants of the SIMD kernels: which ones this machine can run, and forcing one of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace esscher {

// Names such as "AVX2", best first; the first is the one in use. Not empty.
std::vector<std::string> simd_targets();

// Runs every kernel on the named target from now on; an empty name goes back to the best one.
// ArgumentError if this machine cannot run it. For the start of a program and for tests: not while
// other threads compute.
void force_simd_target(std::string_view name);

}  // namespace esscher
