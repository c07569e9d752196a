// What every fuzz target does: any input is either parsed or refused with a typed error, and what
// was parsed survives writing and reading.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "esscher/base/error.h"
#include "esscher/io/array.h"

namespace esscher::fuzz {

// abort() is how libFuzzer learns that a property failed.
inline void require(bool holds) {
  if (!holds) std::abort();
}

inline bool same(const Array& a, const Array& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.fortran == b.fortran &&
         std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end());
}

// Calls parse(bytes); FileError and ConfigError are the only ways out that are not a result.
template <class Parse>
int run(const std::uint8_t* data, std::size_t size, const Parse& parse) {
  try {
    parse(Bytes(reinterpret_cast<const std::byte*>(data), size));
  } catch (const FileError&) {
  } catch (const ConfigError&) {
  }
  return 0;
}

}  // namespace esscher::fuzz
