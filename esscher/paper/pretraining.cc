#include "esscher/paper/pretraining.h"

#include <cmath>

#include "esscher/base/basis.h"
#include "esscher/base/cholesky.h"
#include "esscher/base/error.h"

namespace esscher::paper {
namespace {

double real(Index n) { return static_cast<double>(n); }

Index context_length(const Pretraining& s) {
  return static_cast<Index>(std::lround(s.alpha * real(s.dim)));
}

Matrix normals(Index rows, Index cols, const Stream& stream) {
  Matrix out(rows, cols);
  stream.fill_normal(0, {out.data(), static_cast<std::size_t>(out.size())});
  return out;
}

// The Stieltjes transform of the covariance of the tasks.
double stieltjes(double x, double kappa) {
  const double shift = x + 1 - 1 / kappa;
  return 2 / (shift + std::sqrt(shift * shift + 4 * x / kappa));
}

// tau < 1: fewer contexts than parameters.
double overparametrised(double tau, double x, double kappa, double rho) {
  const double mu = x * stieltjes(x, kappa / tau);
  return tau * (1 + x) / (1 - tau) * (1 - tau * (1 - mu) * (1 - mu) - (x - rho) / x * mu) -
         2 * tau * (1 - mu) + 1 + rho;
}

double underparametrised(double tau, double x, double kappa, double rho) {
  const double m = stieltjes(x, kappa), excess = 1 / (tau - 1);
  const double share = m / (1 + m / kappa);  // kappa m/(kappa + m), also for infinite kappa
  const double k = 1 / (1 - share * share / kappa);
  return (k - excess) * (1 + x) * (x * m) * (x * m) + (3 - 2 * tau) * excess * m * x * x +
         ((1 + rho) * excess * m + 1) * x + rho * m * excess + rho;
}

// The x of smallest norm among those that make |A x - b| smallest; rows or columns are independent.
Vector smallest_fit(const Eigen::MatrixXd& A, const Vector& b) {
  if (A.rows() >= A.cols()) return least_squares(A, b);
  const auto weights = solve_positive(Matrix(A * A.transpose()), Matrix(b));
  if (!weights) throw RuntimeFailure("fitted_error: two contexts are the same");
  return A.transpose() * weights->col(0);
}

}  // namespace

double context_error(const Pretraining& s, const MatrixView& Gamma) {
  const Index d = s.dim;
  const double l = real(context_length(s)), size = real(d);
  const double b_x = 1 + (size * (1 + s.rho) + 1) / l;
  const double b_y = ((1 + s.rho) * (1 + s.rho) + 2 / size) * (1 + 2 / l);
  return 1 + s.rho - 2 / size * Gamma.leftCols(d).trace() +
         (b_x * Gamma.leftCols(d).squaredNorm() + b_y * Gamma.col(d).squaredNorm()) / size;
}

double fitted_error(const Pretraining& s, const Stream& stream) {
  const Index d = s.dim, l = context_length(s);
  const auto n = static_cast<Index>(std::lround(s.tau * real(d * d)));
  const Index k = s.kappa > 0 ? static_cast<Index>(std::lround(s.kappa * real(d))) : n;
  const Matrix tasks = normals(k, d, stream.split(0)).rowwise().normalized() * std::sqrt(real(d));
  Eigen::MatrixXd features(n, d * (d + 1));
  Vector targets(n);
  for (Index i = 0; i < n; ++i) {
    const Stream own = stream.split(1).split(static_cast<std::uint64_t>(i));
    // Tasks of a pool take turns: with k dividing n this is what drawing them is on average.
    const Vector w = tasks.row(i % k).transpose();
    const Matrix x = normals(l + 1, d, own.split(0)) / std::sqrt(real(d));
    const Vector y = x * w + std::sqrt(s.rho) * normals(1, l + 1, own.split(1)).row(0).transpose();
    Vector v(d + 1);
    v.head(d) = real(d) / real(l) * (x.topRows(l).transpose() * y.head(l));
    v(d) = y.head(l).squaredNorm() / real(l);
    const Matrix product = x.row(l).transpose() * v.transpose();
    features.row(i) = Eigen::Map<const Eigen::RowVectorXd>(product.data(), product.size());
    targets(i) = y(l);
  }
  const Vector fit = smallest_fit(features, targets);
  return context_error(s, Eigen::Map<const Matrix>(fit.data(), d, d + 1));
}

double proportional_error(double tau, double alpha, double kappa, double rho) {
  const double x = (1 + rho) / alpha;
  return tau < 1 ? overparametrised(tau, x, kappa, rho) : underparametrised(tau, x, kappa, rho);
}

}  // namespace esscher::paper
