// The version, read from here by CMake and by the Python package.
#pragma once

namespace esscher {

inline constexpr const char* kVersion = "0.1.0";

// Commit the library was built from, "unknown" outside a git checkout.
const char* build_commit();

}  // namespace esscher
