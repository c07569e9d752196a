// The instruction set that the kernels run on.
//
// Kernels are compiled once per target (x86-64: SCALAR, SSE4, AVX2, AVX3; arm64: NEON, SVE, ..).
// The first call chooses the best target that this CPU has. The environment variable ESSCHER_TARGET
// names another one, e.g. ESSCHER_TARGET=SSE4. Results of different targets differ by rounding
// only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace esscher::simd {

// Targets that are both compiled in and supported by this CPU, best first.
std::vector<std::string> supported_targets();

// The target that kernels run on now, reported by code compiled for that target.
std::string active_target();

// Runs kernels on the named target from now on; "" means the best. Overrides ESSCHER_TARGET.
// Throws ArgumentError if the CPU or the build does not have it. Not for use while kernels run.
void force_target(std::string_view name);

// Reads ESSCHER_TARGET, once per process. Every kernel call does this first.
void obey_environment();

}  // namespace esscher::simd
