#include "esscher/measure/gaussian.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/check.h"
#include "esscher/measure/detail/affine_rows.h"
#include "esscher/measure/empirical.h"

namespace esscher {

Gaussian::Gaussian(const VectorView& mean, const MatrixView& cov)
    : mean_(mean), factor_(psd_factor("gaussian", "cov", cov)) {
  checked_dim("gaussian", cov.rows());
  check_dimension("gaussian", "mean", mean.size(), cov.rows());
  check_finite("gaussian", "mean", mean);
  cov_ = 0.5 * (cov + cov.transpose());
}

Gaussian::Gaussian(const MatrixView& cov) : Gaussian(Vector::Zero(cov.rows()), cov) {}

Vector Gaussian::second_moment_times(const VectorView& v) const {
  check_dimension("gaussian", "v", v.size(), dim());
  return cov_ * v + mean_ * mean_.dot(v);
}

double Gaussian::log_mgf(const VectorView& a) const {
  const double centred = centred_log_mgf(a);  // first: it checks the length of a
  return centred + mean_.dot(a);
}

double Gaussian::centred_log_mgf(const VectorView& a) const {
  const double square = a.dot(mean_shift(a));
  // Here entries of both signs may overflow. The squares of F'a can overflow to +inf only.
  if (!std::isfinite(square)) return 0.5 * (factor_.transpose() * a).squaredNorm();
  return 0.5 * std::max(0.0, square);
}

Vector Gaussian::tilted_mean(const VectorView& a) const { return mean_ + mean_shift(a); }

Vector Gaussian::mean_shift(const VectorView& a) const {
  check_tilt("gaussian", a, dim());
  return cov_ * a;
}

Matrix Gaussian::tilted_cov(const VectorView& a) const {
  check_tilt("gaussian", a, dim());
  return cov_;
}

Vector Gaussian::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  check_tilt("gaussian", a, dim());
  check_dimension("gaussian", "v", v.size(), dim());
  return cov_ * v;
}

HigherCumulants Gaussian::higher_cumulants(const VectorView& a, const MatrixView& /*W*/,
                                           const MatrixView& /*Y*/) const {
  check_tilt("gaussian", a, dim());
  return no_higher_cumulants(dim());
}

Empirical Gaussian::sample(const Stream& stream, Index n) const {
  check_sample_size("gaussian", n);
  Matrix normals(n, factor_.cols());
  stream.fill_normal(0,
                     std::span<double>(normals.data(), static_cast<std::size_t>(normals.size())));
  return Empirical(detail::affine_rows(mean_, factor_, normals));
}

double Gaussian::sub_gaussian() const { return std::sqrt(std::max(0.0, max_eigenvalue(cov_))); }

}  // namespace esscher
