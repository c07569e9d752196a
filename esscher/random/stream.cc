#include "esscher/random/stream.h"

#include <bit>
#include <cmath>

#include "esscher/random/constants.h"

namespace esscher {
namespace {

constexpr std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
constexpr std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }
constexpr std::uint64_t join(std::uint32_t lo, std::uint32_t hi) {
  return (std::uint64_t{hi} << 32) | lo;
}

Stream::Block philox4x32(Stream::Block x, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < philox::kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{philox::kMultiplier0} * x[0];
    const std::uint64_t product1 = std::uint64_t{philox::kMultiplier1} * x[2];
    x = {high(product1) ^ x[1] ^ key0, low(product1), high(product0) ^ x[3] ^ key1, low(product0)};
    key0 += philox::kWeyl0;
    key1 += philox::kWeyl1;
  }
  return x;
}

// This is exact, because 52 bits and a half fit into the 53-bit significand.
double to_uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52; }

double log_double(double u) {
  using namespace normal_double;
  const std::uint64_t x = std::bit_cast<std::uint64_t>(u) + (kOne - kSqrtHalf);
  const double k = static_cast<double>(static_cast<std::int64_t>(x >> 52) - 1023);
  const double f = std::bit_cast<double>((x & kMantissa) + kSqrtHalf) - 1.0;
  const double half_square = 0.5 * f * f;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double w = z * z;
  const double even = w * (kLog[1] + w * (kLog[3] + w * kLog[5]));
  const double odd = z * (kLog[0] + w * (kLog[2] + w * (kLog[4] + w * kLog[6])));
  return s * (half_square + (odd + even)) + k * kLn2Low - half_square + f + k * kLn2High;
}

// The first normal of the pair (rho (cos - sin), rho (cos + sin)) with random signs, or the second
// one if `odd`.
double pair_double(std::uint64_t radius_bits, std::uint64_t angle_bits, bool odd) {
  using namespace normal_double;
  const double rho = std::sqrt(-log_double(to_uniform(radius_bits)));
  const double y = (static_cast<double>(angle_bits & kMantissa) - (0x1p51 - 0.5)) * 0x1p-51;
  const double x = y * kQuarterPi;
  const double z = x * x;
  const double sine =
      x +
      x * z *
          (kSin[0] + z * (kSin[1] + z * (kSin[2] + z * (kSin[3] + z * (kSin[4] + z * kSin[5])))));
  const double series =
      kCos[0] + z * (kCos[1] + z * (kCos[2] + z * (kCos[3] + z * (kCos[4] + z * kCos[5]))));
  const double cosine = 1.0 - (0.5 * z - z * z * series);
  const double value = rho * (odd ? cosine + sine : cosine - sine);
  const bool negative = ((angle_bits >> (odd ? 62 : 63)) & 1) != 0;
  return negative ? -value : value;
}

float log_float(float u) {
  using namespace normal_float;
  const std::uint32_t x = std::bit_cast<std::uint32_t>(u) + (kOne - kSqrtHalf);
  const auto k = static_cast<float>(static_cast<std::int32_t>(x >> 23) - 127);
  const float f = std::bit_cast<float>((x & kMantissa) + kSqrtHalf) - 1.0F;
  float p = kLog[7];
  for (int j = 6; j >= 0; --j) p = p * f + kLog[j];
  return k * kLn2 + f * p;
}

// The same in float. The radius takes 31 bits of the first word and 8 of the second, which matter
// in the tail only. The angle takes the top 22 bits of the second word, the signs its bits 1 and 0.
float pair_float(std::uint32_t first, std::uint32_t second, bool odd) {
  using namespace normal_float;
  const auto coarse = static_cast<float>(static_cast<std::int32_t>(first >> 1));
  const auto fine = static_cast<float>(static_cast<std::int32_t>((second >> 2) & 0xFF));
  const float u = coarse * 0x1p-31F + (fine * 0x1p-39F + 0x1p-40F);
  const float rho = std::sqrt(-log_float(u));
  const auto step = static_cast<float>(static_cast<std::int32_t>(second) >> 10);
  const float y = (step + 0.5F) * 0x1p-21F;
  const float z = y * y;
  const float sine = y * (kSin[0] + z * (kSin[1] + z * (kSin[2] + z * kSin[3])));
  const float cosine = kCos[0] + z * (kCos[1] + z * (kCos[2] + z * kCos[3]));
  const float value = rho * (odd ? cosine + sine : cosine - sine);
  const bool negative = ((second >> (odd ? 0 : 1)) & 1) != 0;
  return negative ? -value : value;
}

}  // namespace

Stream::Block Stream::block(std::uint64_t index) const {
  return philox4x32({low(index), high(index), low(stream_), high(stream_)}, low(seed_),
                    high(seed_));
}

// The id of a child is a Philox block under the complement of the seed, a key that no draw uses.
Stream Stream::split(std::uint64_t child) const {
  const Block block =
      philox4x32({low(child), high(child), low(stream_), high(stream_)}, ~low(seed_), ~high(seed_));
  return Stream(seed_, join(block[0], block[1]));
}

std::uint64_t Stream::bits(std::uint64_t i) const {
  const Block words = block(i / 2);
  return i % 2 == 0 ? join(words[0], words[1]) : join(words[2], words[3]);
}

double Stream::uniform(std::uint64_t i) const { return to_uniform(bits(i)); }

double Stream::rademacher(std::uint64_t i) const { return (bits(i) >> 63) != 0 ? 1.0 : -1.0; }

double Stream::normal(std::uint64_t i) const {
  const Block words = block(i / 2);
  return pair_double(join(words[0], words[1]), join(words[2], words[3]), i % 2 != 0);
}

float Stream::normal32(std::uint64_t i) const {
  const Block words = block(i / 4);
  const std::size_t pair = i % 4 < 2 ? 0 : 2;
  return pair_float(words[pair], words[pair + 1], i % 2 != 0);
}

}  // namespace esscher
