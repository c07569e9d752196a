#include "esscher/random/sobol.h"

#include <array>
#include <bit>
#include <boost/math/special_functions/erf.hpp>
#include <boost/random/sobol.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// y = M v + shift over the field of two elements, bit 0 the most significant one. M is lower
// triangular with ones on the diagonal, so it permutes the intervals of every width 2^-k.
class LinearScramble {
 public:
  explicit LinearScramble(const Stream& stream) {
    for (int i = 0; i < 32; ++i) {
      const auto random = static_cast<std::uint32_t>(stream.bits(i));
      const std::uint32_t diagonal = 0x80000000u >> i;
      const std::uint32_t above = ~(0xffffffffu >> i);
      rows_[i] = (random & above) | diagonal;
    }
    shift_ = static_cast<std::uint32_t>(stream.bits(32));
  }
  std::uint32_t operator()(std::uint32_t v) const {
    std::uint32_t y = 0;
    for (int i = 0; i < 32; ++i) {
      y |= static_cast<std::uint32_t>(std::popcount(rows_[i] & v) & 1) << (31 - i);
    }
    return y ^ shift_;
  }

 private:
  std::array<std::uint32_t, 32> rows_;
  std::uint32_t shift_;
};

// Digit i of a coordinate is flipped by a bit of its own for each value of the digits before it. The
// bits of the first m digits are a binary tree, whose node 2^i + p belongs to digit i after the digits
// p. Of 2^m points no two share their first m digits, so that the digits behind are those of a
// uniform number.
class NestedScramble {
 public:
  NestedScramble(const Stream& stream, int m) : m_(m), behind_(stream.split(1)) {
    for (std::uint64_t i = 0; i <= (std::uint64_t{1} << m) / 64; ++i) {
      flips_.push_back(stream.bits(i));
    }
  }
  std::uint32_t operator()(std::uint32_t v) const {
    const std::uint32_t leading = leading_digits(v);
    auto y = static_cast<std::uint32_t>(behind_.bits(leading));
    for (int i = 0; i < m_; ++i) {
      const std::uint32_t digit = 0x80000000u >> i;
      const std::uint32_t node = (1u << i) + (leading >> (m_ - i));
      const bool flip = ((flips_[node / 64] >> (node % 64)) & 1) != 0;
      y = ((v & digit) != 0) != flip ? y | digit : y & ~digit;
    }
    return y;
  }

 private:
  [[nodiscard]] std::uint32_t leading_digits(std::uint32_t v) const {
    return m_ == 0 ? 0 : v >> (32 - m_);
  }

  int m_;
  Stream behind_;
  std::vector<std::uint64_t> flips_;
};

template <class Scramble>
Matrix scrambled(const std::vector<Scramble>& scramble, int m) {
  const auto dims = static_cast<Index>(scramble.size());
  boost::random::sobol_engine<std::uint32_t, 32> sobol(scramble.size());
  Matrix points(Index(1) << m, dims);
  for (Index i = 0; i < points.rows(); ++i) {
    for (Index j = 0; j < dims; ++j) {
      // Boost leaves out the origin, which belongs to the net.
      const std::uint32_t v = i == 0 ? 0u : static_cast<std::uint32_t>(sobol());
      points(i, j) = (scramble[j](v) + 0.5) * 0x1p-32;
    }
  }
  return points;
}

}  // namespace

Matrix scrambled_sobol(Index dims, int m, const Stream& stream, Scrambling scrambling) {
  if (m < 0 || m > 30) throw_argument("scrambled_sobol", "m", std::to_string(m), "0 .. 30");
  if (dims < 1 || dims > kMaxSobolDims) {
    throw_argument("scrambled_sobol", "dims", std::to_string(dims), "1 .. 1000");
  }
  if (scrambling == Scrambling::nested) {
    std::vector<NestedScramble> scramble;
    for (Index j = 0; j < dims; ++j) scramble.emplace_back(stream.split(j), m);
    return scrambled(scramble, m);
  }
  std::vector<LinearScramble> scramble;
  for (Index j = 0; j < dims; ++j) scramble.emplace_back(stream.split(j));
  return scrambled(scramble, m);
}

Matrix sobol_normals(Index dims, int m, const Stream& stream, Scrambling scrambling) {
  return scrambled_sobol(dims, m, stream, scrambling).unaryExpr([](double u) {
    return -std::sqrt(2.0) * boost::math::erfc_inv(2 * u);
  });
}

}  // namespace esscher
