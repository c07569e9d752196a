#include "esscher/concentration/queries.h"

#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"
#include "esscher/random/sobol.h"
#include "esscher/random/widened_normals.h"

namespace esscher {

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

Matrix score_form(const AnyMeasure& mu, const Attention& attention) {
  if (const auto law = gaussian_mixture_law(mu)) return score_form(*law, attention);
  const Vector mean = mu.mean();
  const Matrix cov = mu.second_moment() - mean * mean.transpose();
  const Matrix A = attention.U().transpose() * cov * attention.U();
  return 0.5 * (A + A.transpose());
}

QuerySet sobol_queries(const GaussianLaw& nu, const MatrixView& A, Index count,
                       const Stream& stream) {
  const Index d = nu.mean.size();
  check_dimension("sobol_queries", "A", A.rows(), d);
  const Matrix root = psd_sqrt("sobol_queries", "covariance of the queries", nu.cov);
  // Eigenvalues come in increasing order.
  const Eigensystem eigen = eigensystem(root * A * root);
  const Vector r = widening(eigen.values.reverse());
  const Matrix F = root * eigen.vectors.rowwise().reverse();
  int m = 0;
  while ((kGroups << m) < count) ++m;
  const Index points = Index(1) << m;
  QuerySet nodes{.z = Matrix(kGroups * points, d),
                 .weights = Vector(kGroups * points),
                 .groups = kGroups,
                 .level = Queries::random};
  for (Index g = 0; g < kGroups; ++g) {
    const WidenedNormals x =
        widen(sobol_normals(d, m, stream.split(static_cast<std::uint64_t>(g))), r);
    nodes.z.middleRows(g * points, points) =
        (x.points * F.transpose()).rowwise() + nu.mean.transpose();
    nodes.weights.segment(g * points, points) = x.weights;
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
