#include "esscher/heads/detail/two_clusters.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/simd/gemm.h"

namespace esscher {
namespace {

constexpr int kSteps = 15;
constexpr double kFloor = 1e-3;  // of the mean variance, so that a covariance has an inverse

struct Clusters {
  double w = 1;  // share of the first
  Vector first, second;
  Matrix cov;
};

Matrix floored(Matrix C) {
  C.diagonal().array() += kFloor * C.trace() / static_cast<double>(C.rows()) + 1e-300;
  return C;
}

// Log-densities of each cluster [n,2], with their weights, up to the constant that all share.
Matrix log_densities(const Clusters& c, const MatrixView& x) {
  double log_determinant = 0;
  const Matrix W = inverse_factor(c.cov, log_determinant);
  Matrix out(x.rows(), 2);
  const auto fill = [&](Index column, const Vector& mean, double share) {
    const Vector squares = whitened_squares(x, W, W.transpose() * mean);
    out.col(column) =
        (std::log(std::max(share, 1e-300)) - 0.5 * log_determinant - 0.5 * squares.array());
  };
  fill(0, c.first, c.w);
  fill(1, c.second, 1 - c.w);
  return out;
}

Vector log_likelihoods(const Matrix& logs) {
  const Vector top = logs.rowwise().maxCoeff();
  const Vector sum = (logs.colwise() - top).array().exp().rowwise().sum();
  return top.array() + sum.array().log();
}

// Parameters from the share of each row in the first cluster.
Clusters maximised(const MatrixView& x, const Vector& share) {
  const auto n = static_cast<double>(x.rows());
  const double first = std::clamp(share.sum(), 1e-9 * n, n * (1 - 1e-9));
  Clusters out{.w = first / n,
               .first = x.transpose() * share / first,
               .second = x.transpose() * (Vector::Ones(share.size()) - share) / (n - first),
               .cov = {}};
  Matrix C = x.transpose() * x / n;
  C -=
      out.w * out.first * out.first.transpose() + (1 - out.w) * out.second * out.second.transpose();
  out.cov = floored(C);
  return out;
}

}  // namespace

Vector held_out_gains(const MatrixView& fitted, const MatrixView& unseen) {
  const Vector mean = fitted.colwise().mean();
  const Matrix x = fitted.rowwise() - mean.transpose();
  const Matrix y = unseen.rowwise() - mean.transpose();
  const Clusters one{.w = 1,
                     .first = Vector::Zero(x.cols()),
                     .second = Vector::Zero(x.cols()),
                     .cov = floored(x.transpose() * x / static_cast<double>(x.rows()))};
  double best = -std::numeric_limits<double>::infinity();
  Clusters two = one;
  for (Index j = 0; j < x.cols(); ++j) {
    Clusters found = maximised(x, (x.col(j).array() > 0).cast<double>().matrix());
    for (int step = 0; step < kSteps; ++step) {
      const Matrix logs = log_densities(found, x);
      found = maximised(x, 1 / (1 + (logs.col(1) - logs.col(0)).array().exp()));
    }
    const double likelihood = log_likelihoods(log_densities(found, x)).mean();
    if (likelihood > best) {
      best = likelihood;
      two = found;
    }
  }
  return log_likelihoods(log_densities(two, y)) - log_likelihoods(log_densities(one, y));
}

}  // namespace esscher
