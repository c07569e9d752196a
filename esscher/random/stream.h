// Counter-based random streams: value i of stream s under a seed is a pure function of
// (seed, s, i), so it does not depend on which thread, rank or resumed run draws it.
//
//   block(i) = Philox4x32-10(key = seed, counter = (i, s))          four 32-bit words
//
// Draws of one kind are addressed by their own index i. Use different streams (split) for draws
// that must be independent of each other.
//
// Normals come in pairs by the method of Box and Muller, in the form
//
//   +- rho (cos phi - sin phi),  +- rho (cos phi + sin phi),   rho = sqrt(-log u)
//
// with phi uniform on (-pi/4, pi/4) and two independent random signs, so that sine and cosine are
// needed on one quadrant only. Logarithm, sine and cosine are polynomials evaluated with IEEE
// + - * / sqrt only, never fused, so their bits are the same on every CPU, compiler and SIMD target
// (tests/data/philox_kat.txt).
//
//   normal(i)    u on 2^52 midpoints: |x| <= 8.57, the mass beyond is 1e-17; error < 1e-15
//   normal32(i)  u on 2^39 midpoints, phi on 2^22: |x| <= 7.45, the mass beyond is 1e-13;
//                absolute error < 2e-6; radii below 0.03 lie on a grid of steps up to 3e-4
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace esscher {

class Stream {
 public:
  using Block = std::array<std::uint32_t, 4>;

  explicit Stream(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] std::uint64_t id() const { return stream_; }

  [[nodiscard]] Block block(std::uint64_t index) const;

  // Stream number `child` below this one; independent of this one and of its other children.
  [[nodiscard]] Stream split(std::uint64_t child) const;

  // 64 random bits: half (i mod 2) of block i/2.
  [[nodiscard]] std::uint64_t bits(std::uint64_t i) const;

  // Uniform on the 2^52 midpoints (k + 1/2) 2^-52 of (0,1): never 0, never 1.
  [[nodiscard]] double uniform(std::uint64_t i) const;

  // +1 or -1.
  [[nodiscard]] double rademacher(std::uint64_t i) const;

  // Standard normals: two doubles from block i/2, or four floats from block i/4.
  [[nodiscard]] double normal(std::uint64_t i) const;
  [[nodiscard]] float normal32(std::uint64_t i) const;

  // out[j] = uniform(first + j), normal(first + j), normal32(first + j): the same bits, vectorised.
  void fill_uniform(std::uint64_t first, std::span<double> out) const;
  void fill_normal(std::uint64_t first, std::span<double> out) const;
  void fill_normal(std::uint64_t first, std::span<float> out) const;

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace esscher
