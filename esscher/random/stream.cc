#include "esscher/random/stream.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace esscher {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

constexpr std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
constexpr std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }
constexpr std::uint64_t join(std::uint32_t lo, std::uint32_t hi) {
  return (std::uint64_t{hi} << 32) | lo;
}

Stream::Block philox(Stream::Block x, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * x[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * x[2];
    x = {high(product1) ^ x[1] ^ key0, low(product1), high(product0) ^ x[3] ^ key1, low(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return x;
}

double to_uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

std::pair<double, double> box_muller(const Stream::Block& block) {
  const double radius = std::sqrt(-2.0 * std::log(to_uniform(join(block[0], block[1]))));
  const double angle = 2.0 * std::numbers::pi * to_uniform(join(block[2], block[3]));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

Stream::Block Stream::block(std::uint64_t index) const {
  return philox({low(index), high(index), low(stream_), high(stream_)}, low(seed_), high(seed_));
}

// Children are numbered by a Philox block under a key no draw uses (the complement of the seed).
Stream Stream::split(std::uint64_t child) const {
  const Block block =
      philox({low(child), high(child), low(stream_), high(stream_)}, ~low(seed_), ~high(seed_));
  return Stream(seed_, join(block[0], block[1]));
}

std::uint64_t Stream::bits(std::uint64_t i) const {
  const Block words = block(i / 2);
  return i % 2 == 0 ? join(words[0], words[1]) : join(words[2], words[3]);
}

double Stream::uniform(std::uint64_t i) const { return to_uniform(bits(i)); }

double Stream::rademacher(std::uint64_t i) const { return (bits(i) >> 63) != 0 ? 1.0 : -1.0; }

double Stream::normal(std::uint64_t i) const {
  const auto [even, odd] = box_muller(block(i / 2));
  return i % 2 == 0 ? even : odd;
}

void Stream::fill_uniform(std::uint64_t first, std::span<double> out) const {
  for (std::size_t j = 0; j < out.size(); ++j) out[j] = uniform(first + j);
}

void Stream::fill_normal(std::uint64_t first, std::span<double> out) const {
  for (std::size_t j = 0; j < out.size(); ++j) out[j] = normal(first + j);
}

}  // namespace esscher
