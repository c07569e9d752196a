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
class Scramble {
 public:
  explicit Scramble(const Stream& stream) {
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

}  // namespace

Matrix scrambled_sobol(Index dims, int m, const Stream& stream) {
  if (m < 0 || m > 30) throw_argument("scrambled_sobol", "m", std::to_string(m), "0 .. 30");
  if (dims < 1 || dims > kMaxSobolDims) {
    throw_argument("scrambled_sobol", "dims", std::to_string(dims), "1 .. 1000");
  }
  std::vector<Scramble> scramble;
  for (Index j = 0; j < dims; ++j) scramble.emplace_back(stream.split(j));
  boost::random::sobol_engine<std::uint32_t, 32> sobol(static_cast<std::size_t>(dims));
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

Matrix sobol_normals(Index dims, int m, const Stream& stream) {
  return scrambled_sobol(dims, m, stream).unaryExpr([](double u) {
    return -std::sqrt(2.0) * boost::math::erfc_inv(2 * u);
  });
}

}  // namespace esscher
