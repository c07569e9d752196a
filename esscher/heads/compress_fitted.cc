// Methods that are fitted to the outputs of calibration queries.
#include <algorithm>
#include <cmath>
#include <vector>

#include "esscher/base/cholesky.h"
#include "esscher/base/eigensystem.h"
#include "esscher/heads/compress.h"
#include "esscher/heads/detail/compress_parts.h"

namespace esscher {
namespace {

constexpr double kAffineRidge = 1e-3;  // of the mean variance of the calibration queries
constexpr double kMatchRidge = 1e-2;   // of the mean squared weight of a key
constexpr int kSweeps = 500;

// min |X B - Y|^2 + ridge |B|^2.
Matrix ridge_solution(const Matrix& X, const Matrix& Y, double ridge) {
  Matrix gram = X.transpose() * X;
  gram.diagonal().array() += ridge;
  // A ridge of 0 means that nothing varies; then there is nothing to fit.
  return solve_positive(gram, X.transpose() * Y).value_or(Matrix::Zero(X.cols(), Y.cols()));
}

}  // namespace

std::optional<Compressed> affine_map(const CompressInput& input, Index numbers) {
  const Index dk = input.keys.cols();
  const Index dv = input.values.cols();
  const Index m = input.calibration.rows();
  const Index full = std::min({dk, dv, m - 1});
  const Index rank = std::min(full, (numbers - dv) / (dk + dv));
  if (numbers < dv || rank < 1) return std::nullopt;
  const Matrix T = attention_weights(input) * input.values;
  const Vector mean_a = input.calibration.colwise().mean();
  const Vector mean_t = T.colwise().mean();
  const Matrix A = input.calibration.rowwise() - mean_a.transpose();
  const Matrix Y = T.rowwise() - mean_t.transpose();
  const double ridge = kAffineRidge * A.squaredNorm() / static_cast<double>(dk);
  const Matrix B = ridge_solution(A, Y, ridge);  // [dk,dv]
  const Matrix fitted = A * B;
  const Eigensystem e = eigensystem(fitted.transpose() * fitted);
  const Matrix W = e.vectors.rightCols(rank);  // [dv,rank]
  const Matrix down = (B * W).transpose();     // [rank,dk]
  const Vector offset = mean_t - W * (down * mean_a);
  // A map of full rank is kept as it is where that is shorter.
  const Index kept = std::min(dv + rank * (dk + dv), dv + dk * dv);
  return Compressed{
      .numbers = kept,
      .multiply_adds = kept - dv,
      .output = [W, down, offset](const VectorView& a) { return Vector(offset + W * (down * a)); }};
}

Vector nonnegative_least_squares(const MatrixView& A, const VectorView& b, double ridge) {
  Matrix gram = A.transpose() * A;
  gram.diagonal().array() += ridge;
  const Vector right = A.transpose() * b;
  Vector w = Vector::Zero(A.cols());
  Vector slope = -right;  // gram w - right
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double moved = 0;
    for (Index j = 0; j < w.size(); ++j) {
      if (!(gram(j, j) > 0)) continue;
      const double next = std::max(0.0, w(j) - slope(j) / gram(j, j));
      const double step = next - w(j);
      if (step == 0) continue;
      slope += step * gram.col(j);
      w(j) = next;
      moved = std::max(moved, std::abs(step));
    }
    if (moved <= 1e-12 * w.cwiseAbs().maxCoeff()) break;
  }
  return w;
}

CompactCache matched_cache(const CompressInput& input, const std::vector<Index>& keys) {
  const Matrix weights = attention_weights(input);  // [m,n]
  const auto k = static_cast<Index>(keys.size());
  Matrix A(weights.rows(), k);  // e^{s} / Z: with weights 1 a row sums to the mass that is kept
  Matrix chosen_k(k, input.keys.cols());
  Matrix chosen_v(k, input.values.cols());
  for (Index j = 0; j < k; ++j) {
    const Index l = keys[static_cast<std::size_t>(j)];
    A.col(j) = weights.col(l);
    chosen_k.row(j) = input.keys.row(l);
    chosen_v.row(j) = input.values.row(l);
  }
  const double size = A.squaredNorm() / static_cast<double>(k);
  Vector mass = nonnegative_least_squares(A, Vector::Ones(A.rows()), 1e-6 * size);
  // A key of no mass would have an infinite bias; a negligible one does not change the outputs.
  mass = mass.cwiseMax(1e-12 * std::max(1e-300, mass.maxCoeff()));
  Matrix P = A * mass.asDiagonal();
  for (Index i = 0; i < P.rows(); ++i) P.row(i) /= P.row(i).sum();
  const double ridge = kMatchRidge * P.squaredNorm() / static_cast<double>(k);
  const Matrix wanted = weights * input.values - P * chosen_v;
  return {.keys = chosen_k,
          .bias = mass.array().log(),
          .values = chosen_v + ridge_solution(P, wanted, ridge)};
}

}  // namespace esscher
