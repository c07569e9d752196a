#include "esscher/concentration/queries.h"

#include <cmath>

#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"
#include "esscher/random/sobol.h"

namespace esscher {
namespace {

// r_i for decreasing eigenvalues. One direction multiplies E w^2 by r/sqrt(2r - 1).
Vector inflation(const VectorView& lambda) {
  constexpr double kMaxSpread = 3;
  Vector r = Vector::Ones(lambda.size());
  double spread = 1;
  for (Index i = 0; i < lambda.size() && lambda[i] > 0.01; ++i) {
    const double wide = lambda[i] < 0.3 ? 1.5 / (1 - 2 * lambda[i]) : 4.0;
    spread *= wide / std::sqrt(2 * wide - 1);
    if (spread > kMaxSpread) break;
    r[i] = wide;
  }
  return r;
}

}  // namespace

Vector QuerySet::shares(const VectorView& values) const {
  return groups > 0 ? controlled(values, weights) : Vector(values);
}

Matrix QuerySet::column_shares(const MatrixView& values) const {
  Matrix out = values;
  for (Index l = 0; groups > 0 && l < out.cols(); ++l) {
    out.col(l) = controlled(values.col(l), weights);
  }
  return out;
}

double QuerySet::average(const VectorView& values) const { return shares(values).mean(); }

Matrix QuerySet::independent(const MatrixView& shares) const {
  return groups > 0 ? group_means(shares, groups) : Matrix(shares);
}

TwoLevel QuerySet::interval(const VectorView& independent, double confidence) const {
  return two_level(independent, Vector::Zero(independent.size()), 1, Queries::random, confidence);
}

QuerySet given_queries(const Matrix& points) {
  return {.z = points, .weights = Vector::Ones(points.rows())};
}

QuerySet drawn_queries(const AnyMeasure& nu, Index count, std::uint64_t seed) {
  return {.z = nu.sample(Stream(seed).split(kQueryStream), count).tokens(),
          .weights = Vector::Ones(count),
          .level = Queries::random};
}

Matrix score_form(const GaussianMixtureLaw& mu, const Attention& attention) {
  Matrix sharpest = Matrix::Zero(attention.dim(), attention.dim());
  for (const GaussianLaw& part : mu.components) {
    Matrix A = attention.U().transpose() * part.cov * attention.U();
    if (A.trace() > sharpest.trace()) sharpest = std::move(A);
  }
  return 0.5 * (sharpest + sharpest.transpose());
}

QuerySet sobol_queries(const GaussianLaw& nu, const MatrixView& A, Index count,
                       const Stream& stream) {
  const Index d = nu.mean.size();
  check_dimension("sobol_queries", "A", A.rows(), d);
  const Matrix root = psd_sqrt("sobol_queries", "covariance of the queries", nu.cov);
  // Eigenvalues come in increasing order.
  const Eigensystem eigen = eigensystem(root * A * root);
  const Vector r = inflation(eigen.values.reverse());
  const Matrix F = root * eigen.vectors.rowwise().reverse() * r.cwiseSqrt().asDiagonal();
  int m = 0;
  while ((kGroups << m) < count) ++m;
  const Index points = Index(1) << m;
  QuerySet nodes{.z = Matrix(kGroups * points, d),
                 .weights = Vector(kGroups * points),
                 .groups = kGroups,
                 .level = Queries::random};
  const double scale = std::sqrt(r.prod());
  for (Index g = 0; g < kGroups; ++g) {
    const Matrix x = sobol_normals(d, m, stream.split(static_cast<std::uint64_t>(g)));
    nodes.z.middleRows(g * points, points) = (x * F.transpose()).rowwise() + nu.mean.transpose();
    const Vector square = x.cwiseAbs2() * (r.array() - 1).matrix();
    nodes.weights.segment(g * points, points) = scale * (-0.5 * square.array()).exp();
  }
  return nodes;
}

Vector controlled(const VectorView& values, const VectorView& weights) {
  const Vector product = weights.cwiseProduct(values);
  const Vector centred = weights.array() - weights.mean();
  const double variance = centred.squaredNorm();
  const double beta = variance > 0 ? centred.dot(product) / variance : 0.0;
  return product.array() - beta * (weights.array() - 1);
}

Matrix group_means(const MatrixView& values, Index groups) {
  const Index rows = values.rows() / groups;
  Matrix means(groups, values.cols());
  for (Index g = 0; g < groups; ++g) {
    means.row(g) = values.middleRows(g * rows, rows).colwise().mean();
  }
  return means;
}

}  // namespace esscher
