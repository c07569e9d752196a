#include "esscher/prompt/sampled_heads.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "esscher/base/basis.h"
#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"

namespace esscher {
namespace {

// An orthonormal basis [k,p] of the span of the directions, or of R^k if they could fill it.
Matrix span_of(const MatrixView& tilts, const MatrixView& functionals) {
  const Index k = tilts.rows();
  if (tilts.cols() + functionals.cols() >= k) return Matrix::Identity(k, k);
  Eigen::MatrixXd all(k, tilts.cols() + functionals.cols());
  all << tilts, functionals;
  return orthonormal_basis(all, 1e-13 * all.norm(), all.cols());
}

// For each head the sums of w, w g and w t g, with w = e^{s - top}. For all heads together the sums
// of products of the 2H weights (w_h, w_h t_h), which are the covariance of the part off the span.
struct HeadSums {
  Vector top;       // [H]
  Vector s0;        // [H]
  Vector st;        // [H] sum w t
  Matrix sg;        // [p,H]
  Matrix stg;       // [p,H]
  Matrix products;  // [2H,2H]
};

HeadSums sum_tokens(const Matrix& alpha, const Matrix& rho, std::int64_t L, const Stream& stream) {
  constexpr std::int64_t kTokens = 128;
  const Index p = alpha.rows();
  const Index H = alpha.cols();
  HeadSums sums{Vector::Constant(H, -INFINITY),
                Vector::Zero(H),
                Vector::Zero(H),
                Matrix::Zero(p, H),
                Matrix::Zero(p, H),
                Matrix::Zero(2 * H, 2 * H)};
  Matrix buffer(kTokens, p);
  for (std::int64_t done = 0; done < L; done += kTokens) {
    const Index n = std::min(kTokens, L - done);
    stream.fill_normal(static_cast<std::uint64_t>(done * p),
                       std::span<double>(buffer.data(), static_cast<std::size_t>(n * p)));
    const auto g = buffer.topRows(n);
    Matrix weights(n, 2 * H);
    weights.leftCols(H).noalias() = g * alpha;
    weights.rightCols(H).noalias() = g * rho;
    Vector factor(2 * H);
    for (Index h = 0; h < H; ++h) {
      const double top = std::max(sums.top(h), weights.col(h).maxCoeff());
      factor(h) = factor(H + h) = std::exp(sums.top(h) - top);
      sums.top(h) = top;
      weights.col(h) = (weights.col(h).array() - top).exp();
      weights.col(H + h).array() *= weights.col(h).array();
    }
    const auto f = factor.head(H).array();
    sums.s0 = f * sums.s0.array() + weights.leftCols(H).colwise().sum().transpose().array();
    sums.st = f * sums.st.array() + weights.rightCols(H).colwise().sum().transpose().array();
    const Matrix sg = g.transpose() * weights;
    sums.sg = sums.sg * factor.head(H).asDiagonal() + sg.leftCols(H);
    sums.stg = sums.stg * factor.head(H).asDiagonal() + sg.rightCols(H);
    sums.products = factor.asDiagonal() * sums.products * factor.asDiagonal();
    sums.products += weights.transpose() * weights;
  }
  return sums;
}

}  // namespace

HeadsDraw draw_heads(const MatrixView& tilts, const MatrixView& functionals, std::int64_t L,
                     const Stream& stream) {
  check_dimension("draw_heads", "rows of functionals", functionals.rows(), tilts.rows());
  check_dimension("draw_heads", "columns of functionals", functionals.cols(), tilts.cols());
  if (L < 1) throw_argument("draw_heads", "L", std::to_string(L), "an integer >= 1");
  const Index k = tilts.rows();
  const Index H = tilts.cols();
  const Matrix E = span_of(tilts, functionals);
  const Index p = E.cols();
  const Matrix rho = E.transpose() * functionals;
  const HeadSums sums = sum_tokens(E.transpose() * tilts, rho, L, stream.split(0));

  // Passes from (w, w t) to (omega, omega (t - f)) with f = sum omega t.
  const Vector scale = sums.s0.cwiseInverse();
  const Vector f = sums.st.cwiseProduct(scale);
  HeadsDraw draw;
  const Matrix mean = sums.sg * scale.asDiagonal();
  draw.means = E * mean;
  draw.products = E * (sums.stg * scale.asDiagonal() - mean * f.asDiagonal());
  if (p == k) return draw;

  Matrix to_weights = Matrix::Zero(2 * H, 2 * H);
  to_weights.topLeftCorner(H, H) = scale.asDiagonal();
  to_weights.bottomLeftCorner(H, H) = (-f.cwiseProduct(scale)).asDiagonal();
  to_weights.bottomRightCorner(H, H) = scale.asDiagonal();
  const Eigensystem eigen = eigensystem(to_weights * sums.products * to_weights.transpose());
  const Matrix root = eigen.vectors * eigen.values.cwiseMax(0.0).cwiseSqrt().asDiagonal();
  Matrix noise(k, 2 * H);
  stream.split(1).fill_normal(
      0, std::span<double>(noise.data(), static_cast<std::size_t>(noise.size())));
  noise -= (E * (E.transpose() * noise)).eval();
  const Matrix off = noise * root.transpose();
  draw.means += off.leftCols(H);
  draw.products += off.rightCols(H);
  return draw;
}

}  // namespace esscher
