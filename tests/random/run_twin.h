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

// The words of the run that begins with a block.
class RunOfWords {
 public:
  RunOfWords(const Stream& stream, std::uint64_t block) : state_(stream.block(block)) {}

  std::uint32_t next() {
    auto& [a, b, c, counter] = state_;
    const std::uint32_t out = a + b + counter++;
    a = b ^ (b >> 9);
    b = c + (c << 3);
    c = std::rotl(c, 21) + out;
    return out;
  }

  // The next n normals. An odd n leaves the second one of the last pair unused.
  std::vector<double> normals(std::size_t n) {
    std::vector<double> out;
    while (out.size() < n) {
      const std::uint32_t r = next();
      const std::uint32_t t = next();
      const double u = ((r >> 1 & 0x3FFFFFFFU) + ((t & 0xFFU) + 0.5) / 256) * 0x1p-30;
      const double phi = std::numbers::pi / 4 * static_cast<std::int32_t>(t) * 0x1p-31;
      const double rho = std::sqrt(-std::log(u));
      out.push_back((r >> 31 ? -1 : 1) * rho * (std::cos(phi) - std::sin(phi)));
      out.push_back((r & 1 ? -1 : 1) * rho * (std::cos(phi) + std::sin(phi)));
    }
    out.resize(n);
    return out;
  }

 private:
  Stream::Block state_;
};

// Normals 0 .. n-1 of the run that begins with a block.
inline std::vector<double> run_of_normals(const Stream& stream, std::uint64_t block,
                                          std::size_t n) {
  return RunOfWords(stream, block).normals(n);
}

}  // namespace esscher::testing
