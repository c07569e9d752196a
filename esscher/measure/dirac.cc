#include "esscher/measure/dirac.h"

#include "esscher/base/error.h"
#include "esscher/measure/check.h"
#include "esscher/measure/empirical.h"

namespace esscher {

Dirac::Dirac(const VectorView& point) : point_(point) {
  checked_dim("dirac", point.size());
  check_finite("dirac", "point", point);
}

double Dirac::log_mgf(const VectorView& a) const {
  check_tilt("dirac", a, dim());
  return point_.dot(a);
}

double Dirac::centred_log_mgf(const VectorView& a) const {
  check_tilt("dirac", a, dim());
  return 0;
}

Vector Dirac::tilted_mean(const VectorView& a) const {
  check_tilt("dirac", a, dim());
  return point_;
}

Vector Dirac::mean_shift(const VectorView& a) const {
  check_tilt("dirac", a, dim());
  return Vector::Zero(dim());
}

Matrix Dirac::tilted_cov(const VectorView& a) const {
  check_tilt("dirac", a, dim());
  return Matrix::Zero(dim(), dim());
}

Vector Dirac::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  check_tilt("dirac", a, dim());
  check_dimension("dirac", "v", v.size(), dim());
  return Vector::Zero(dim());
}

HigherCumulants Dirac::higher_cumulants(const VectorView& a, const MatrixView& /*W*/,
                                        const MatrixView& /*Y*/) const {
  check_tilt("dirac", a, dim());
  return no_higher_cumulants(dim());
}

Empirical Dirac::sample(const Stream& /*stream*/, Index n) const {
  check_sample_size("dirac", n);
  return Empirical(Matrix(point_.transpose().replicate(n, 1)));
}

}  // namespace esscher
