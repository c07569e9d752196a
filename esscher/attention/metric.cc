#include "esscher/attention/metric.h"

#include "esscher/attention/attention.h"

namespace esscher {

Matrix MetricFactor::matrix_or_identity(Index d) const {
  return matrix == nullptr ? Matrix(Matrix::Identity(d, d)) : *matrix;
}

Matrix MetricFactor::gram(Index d) const {
  if (matrix == nullptr) return Matrix::Identity(d, d);
  return matrix->transpose() * *matrix;
}

double MetricFactor::norm2(const VectorView& x) const {
  return scale2 * (matrix == nullptr ? x.squaredNorm() : (*matrix * x).squaredNorm());
}

double MetricForm::factor(const VectorView& z) const {
  const double sides = left.scale2 * right.scale2;
  return query ? sides * query->norm2(z) : sides;
}

double MetricForm::mean_norm2(const VectorView& m) const {
  return left.matrix == nullptr ? m.squaredNorm() : (*left.matrix * m).squaredNorm();
}

double MetricForm::covariance_norm2(const Matrix& VC) const {
  return right.matrix == nullptr ? VC.squaredNorm()
                                 : (VC * right.matrix->transpose()).squaredNorm();
}

MetricForm metric_form(Metric metric, const Attention& attention) {
  MetricForm form;
  form.of_covariance = reads_covariance(metric);
  if (metric == Metric::grad_v) {
    form.left.scale2 = static_cast<double>(attention.output_dim());
  } else {
    form.left.matrix = &attention.V();
  }
  if (!form.of_covariance) return form;
  form.query.emplace();
  if (metric == Metric::grad_u) return form;
  MetricFactor& scaled = metric == Metric::grad_k ? *form.query : form.right;
  scaled.matrix = metric == Metric::grad_k ? &attention.Q() : &attention.K();
  scaled.scale2 = attention.scale() * attention.scale();
  return form;
}

}  // namespace esscher
