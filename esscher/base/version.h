// The version. CMake and the Python package read it from this file.
#pragma once

namespace esscher {

inline constexpr const char* kVersion = "0.1.0";

// The commit that the library was built from, or "unknown" outside a git checkout.
const char* build_commit();

}  // namespace esscher
