#include "esscher/heads/excess.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "esscher/base/parallel.h"
#include "esscher/estimate/quantile.h"
#include "esscher/heads/detail/whitening.h"
#include "esscher/simd/gemm.h"

namespace esscher {
namespace {

// Columns 0..q-1 weigh the error of the limit, columns q..2q-1 what moved. Keys behind the end of a
// query weigh 0.
Matrix output_weights(const MatrixView& scores, const std::vector<Index>& ends) {
  const Index q = scores.cols();
  Matrix out = Matrix::Zero(scores.rows(), 2 * q);
  for (Index i = 0; i < q; ++i) {
    const Index n = ends[static_cast<std::size_t>(i)];
    const auto s = scores.col(i).head(n).array();
    const double share = 1.0 / static_cast<double>(n);
    const Eigen::ArrayXd w = (s - s.maxCoeff()).exp();
    out.col(q + i).head(n) = (w / w.sum() - share).matrix();
    out.col(i).head(n) = out.col(q + i).head(n) - (share * (s - s.mean())).matrix();
  }
  return out;
}

std::vector<double> ratios(const Matrix& outputs) {
  const Index q = outputs.rows() / 2;
  std::vector<double> out;
  for (Index i = 0; i < q; ++i) {
    const double moved = outputs.row(q + i).norm();
    out.push_back(moved > 0 ? outputs.row(i).norm() / moved : 0.0);
  }
  return out;
}

// What the null keeps of a head.
struct Null {
  Matrix up;        // [q,r] scores of the white coordinates
  Matrix B;         // [dv,r] values of the white coordinates, in the basis of Cov(rho)
  Vector residual;  // [dv] deviations of rho
};

Null null_of(const MatrixView& scores, const MatrixView& values) {
  const auto n = static_cast<double>(scores.rows());
  const Matrix s = centred_rows(scores);
  const Matrix v = centred_rows(values);
  Matrix C = Matrix::Zero(s.cols(), s.cols());
  add_gram(s, C);
  const Whitening white = whitening(C / n);
  const Matrix x = s * white.down;
  Matrix B = Matrix::Zero(v.cols(), x.cols());
  add_gram(v, x, B);
  B /= n;
  Matrix R = Matrix::Zero(v.cols(), v.cols());
  add_gram(v, R);
  const Eigensystem e = oriented_eigensystem(R / n - B * B.transpose());
  return {.up = white.up,
          .B = e.vectors.transpose() * B,
          .residual = e.values.cwiseMax(0.0).cwiseSqrt()};
}

Matrix normals(Index rows, Index cols, const Stream& stream) {
  Matrix out(rows, cols);
  stream.fill_normal(0, std::span<double>(out.data(), static_cast<std::size_t>(out.size())));
  return out;
}

// One prompt of n Gaussian keys and values: the outputs of both kinds [2q,dv].
Matrix null_outputs(const Null& null, Index n, const std::vector<Index>& ends,
                    const Stream& stream) {
  const auto N = static_cast<double>(n);
  Matrix x = centred_rows(normals(n, null.up.cols(), stream.split(0)));
  Matrix C = Matrix::Zero(x.cols(), x.cols());
  add_gram(x, C);
  const Matrix white = whitening(C / N).down;
  Matrix scores = Matrix::Zero(n, null.up.rows());
  add_product(x, Matrix(white * null.up.transpose()), scores);
  const Matrix weights = output_weights(scores, ends);
  Matrix along = Matrix::Zero(weights.cols(), x.cols());
  add_gram(weights, x, along);
  along *= white;
  Matrix across = Matrix::Zero(weights.cols(), weights.cols());
  add_gram(weights, across);
  const Vector sums = weights.colwise().sum();
  across -= (along * along.transpose() + sums * sums.transpose()) / N;
  const Eigensystem e = oriented_eigensystem(across);
  const Matrix root = e.vectors * e.values.cwiseMax(0.0).cwiseSqrt().asDiagonal();
  const Matrix noise = normals(weights.cols(), null.residual.size(), stream.split(1));
  return along * null.B.transpose() + root * noise * null.residual.asDiagonal();
}

}  // namespace

std::vector<double> limit_errors(const MatrixView& scores, const MatrixView& values,
                                 const std::vector<Index>& ends) {
  Matrix outputs = Matrix::Zero(2 * scores.cols(), values.cols());
  add_gram(output_weights(scores, ends), centred_rows(values), outputs);
  return ratios(outputs);
}

std::optional<ErrorExcess> error_excess(const MatrixView& scores, const MatrixView& values,
                                        const std::vector<Index>& ends, const Stream& stream) {
  const Index n = scores.rows();
  const Matrix moved = centred_rows(scores);
  const double largest = scores.size() > 0 ? scores.cwiseAbs().maxCoeff() : 0.0;
  if (n < scores.cols() + 4 || !(moved.cwiseAbs().maxCoeff() > 1e-12 * largest)) {
    return std::nullopt;
  }
  const Null null = null_of(scores, values);
  std::vector<double> errors(kExcessReplicates);
  parallel_for(kExcessReplicates, [&](std::int64_t r) {
    const Stream replicate = stream.split(static_cast<std::uint64_t>(r));
    errors[static_cast<std::size_t>(r)] = median(ratios(null_outputs(null, n, ends, replicate)));
  });
  ErrorExcess out{.error = median(limit_errors(scores, values, ends)),
                  .typical = median(errors),
                  .limit = order_statistic(errors, 1 - kExcessLevel),
                  .keys = n,
                  .queries = scores.cols()};
  const auto above =
      std::count_if(errors.begin(), errors.end(), [&](double error) { return error >= out.error; });
  out.p = static_cast<double>(1 + above) / static_cast<double>(1 + kExcessReplicates);
  return out;
}

}  // namespace esscher
