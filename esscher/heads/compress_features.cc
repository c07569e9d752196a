// Positive random features (Choromanski et al. 2021): e^{<a,k>} = E_w phi(a) phi(k) with
// phi(x) = e^{<w,x> - |x|^2 / 2}, w standard normal. Keys are centred, which softmax does not see, and
// queries and keys are brought to one size, which the product does not see.
#include <algorithm>
#include <cmath>

#include "esscher/heads/compress.h"
#include "esscher/heads/detail/compress_parts.h"

namespace esscher {
namespace {

// Rows of standard normal length, orthogonal within blocks of d.
Matrix orthogonal_directions(Index count, Index d, const Stream& stream) {
  Matrix out(count, d);
  stream.split(0).fill_normal(0, {out.data(), static_cast<std::size_t>(out.size())});
  Matrix lengths(count, d);
  stream.split(1).fill_normal(0, {lengths.data(), static_cast<std::size_t>(lengths.size())});
  for (Index i = 0; i < count; ++i) {
    for (Index j = i - i % d; j < i; ++j) out.row(i) -= out.row(i).dot(out.row(j)) * out.row(j);
    out.row(i).normalize();
  }
  for (Index i = 0; i < count; ++i) out.row(i) *= lengths.row(i).norm();
  return out;
}

}  // namespace

std::optional<Compressed> random_features(const CompressInput& input, Index numbers,
                                          const Stream& stream) {
  const Index dk = input.keys.cols();
  const Index dv = input.values.cols();
  const Index M = (numbers - dk - 1) / (dv + 1);
  if (numbers < dk + 1 || M < 1) return std::nullopt;
  const Vector mean = input.keys.colwise().mean();
  const Matrix keys = input.keys.rowwise() - mean.transpose();
  const double ratio =
      keys.squaredNorm() / static_cast<double>(keys.rows()) /
      (input.calibration.squaredNorm() / static_cast<double>(input.calibration.rows()));
  const double size = ratio > 0 && std::isfinite(ratio) ? std::pow(ratio, 0.25) : 1.0;
  const Matrix directions = orthogonal_directions(M, dk, stream);
  Matrix logs = keys * directions.transpose() / size;
  logs.colwise() -= 0.5 / (size * size) * keys.rowwise().squaredNorm();
  const Matrix phi = (logs.array() - logs.maxCoeff()).exp();
  const Matrix sums_v = phi.transpose() * input.values;  // [M,dv]
  const Vector sums = phi.colwise().sum().transpose();
  return Compressed{.numbers = M * (dv + 1) + dk + 1,
                    .multiply_adds = M * (dk + dv + 1),
                    .output = [directions, sums_v, sums, size](const VectorView& a) {
                      const Vector x = size * (directions * a);
                      const Vector w = (x.array() - x.maxCoeff()).exp();
                      return Vector(sums_v.transpose() * w / w.dot(sums));
                    }};
}

}  // namespace esscher
