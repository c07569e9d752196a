// The runs of normals of random/sfc-inl.h, written plainly in double.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include "esscher/random/stream.h"

namespace esscher::testing {

// Normals 0 .. n-1 of the run that begins with a block.
inline std::vector<double> run_of_normals(const Stream& stream, std::uint64_t block,
                                          std::size_t n) {
  Stream::Block state = stream.block(block);
  const auto next = [&state] {
    auto& [a, b, c, counter] = state;
    const std::uint32_t out = a + b + counter++;
    a = b ^ (b >> 9);
    b = c + (c << 3);
    c = std::rotl(c, 21) + out;
    return out;
  };
  std::vector<double> normals;
  while (normals.size() < n) {
    const std::uint32_t r = next();
    const std::uint32_t t = next();
    const double u = ((r >> 1 & 0x3FFFFFFFU) + ((t & 0xFFU) + 0.5) / 256) * 0x1p-30;
    const double phi = std::numbers::pi / 4 * static_cast<std::int32_t>(t) * 0x1p-31;
    const double rho = std::sqrt(-std::log(u));
    normals.push_back((r >> 31 ? -1 : 1) * rho * (std::cos(phi) - std::sin(phi)));
    normals.push_back((r & 1 ? -1 : 1) * rho * (std::cos(phi) + std::sin(phi)));
  }
  return normals;
}

}  // namespace esscher::testing
