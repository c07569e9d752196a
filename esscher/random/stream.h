// Counter-based random streams: value i of stream s under a seed is a pure function of
// (seed, s, i), so it does not depend on which thread, rank or resumed run draws it.
//
//   block(i) = Philox4x32-10(key = seed, counter = (i, s))          four 32-bit words
//
// Draws of one kind are addressed by their own index i; use different streams (split) for draws
// that must be independent of each other.
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

  // Uniform on the 2^53 midpoints (k + 1/2) 2^-53 of (0,1): never 0, never 1.
  [[nodiscard]] double uniform(std::uint64_t i) const;

  // +1 or -1.
  [[nodiscard]] double rademacher(std::uint64_t i) const;

  // Standard normal: Box-Muller on block i/2, cosine for even i, sine for odd i; |x| <= 8.7.
  [[nodiscard]] double normal(std::uint64_t i) const;

  // out[j] = uniform(first + j), normal(first + j).
  void fill_uniform(std::uint64_t first, std::span<double> out) const;
  void fill_normal(std::uint64_t first, std::span<double> out) const;

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace esscher
