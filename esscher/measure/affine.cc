#include "esscher/measure/affine.h"

#include <cmath>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/check.h"
#include "esscher/measure/detail/affine_rows.h"
#include "esscher/measure/sub_gaussian.h"

namespace esscher {

Affine::Affine(const VectorView& c, const MatrixView& B, AnyMeasure inner)
    : c_(c), B_(B), inner_(std::move(inner)) {
  checked_dim("affine", c_.size());
  check_dimension("affine", "B (rows)", B_.rows(), c_.size());
  check_dimension("affine", "B (columns)", B_.cols(), inner_.dim());
  check_finite("affine", "c", c_);
  check_finite("affine", "B", B_);
}

Vector Affine::pulled_back(const VectorView& a) const {
  check_tilt("affine", a, dim());
  return B_.transpose() * a;
}

Vector Affine::mean() const { return c_ + B_ * inner_.mean(); }

Matrix Affine::second_moment() const {
  const Vector shift = B_ * inner_.mean();
  return B_ * inner_.second_moment() * B_.transpose() + c_ * shift.transpose() +
         shift * c_.transpose() + c_ * c_.transpose();
}

double Affine::log_mgf(const VectorView& a) const {
  const double inner = inner_.log_mgf(pulled_back(a));  // first: it checks the length of a
  return c_.dot(a) + inner;
}

double Affine::centred_log_mgf(const VectorView& a) const {
  return inner_.centred_log_mgf(pulled_back(a));
}

Vector Affine::tilted_mean(const VectorView& a) const {
  return c_ + B_ * inner_.tilted_mean(pulled_back(a));
}

Vector Affine::mean_shift(const VectorView& a) const {
  return B_ * inner_.mean_shift(pulled_back(a));
}

Matrix Affine::tilted_cov(const VectorView& a) const {
  const Matrix cov = B_ * inner_.tilted_cov(pulled_back(a)) * B_.transpose();
  return 0.5 * (cov + cov.transpose());
}

Vector Affine::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  check_dimension("affine", "v", v.size(), dim());
  return B_ * inner_.tilted_cov_times(pulled_back(a), B_.transpose() * v);
}

HigherCumulants Affine::higher_cumulants(const VectorView& a, const MatrixView& W,
                                         const MatrixView& Y) const {
  const auto pulled = [&](const MatrixView& A) -> Matrix { return B_.transpose() * A * B_; };
  const HigherCumulants inner = inner_.higher_cumulants(pulled_back(a), pulled(W), pulled(Y));
  return {B_ * inner.third_w, B_ * inner.third_y, inner.fourth};
}

Empirical Affine::sample(const Stream& stream, Index n) const {
  const Empirical inner = inner_.sample(stream, n);
  return Empirical(detail::affine_rows(c_, B_, inner.tokens()));
}

double Affine::sub_gaussian() const {
  if (B_.isZero(0)) return 0.0;
  if (inner_.strictly_sub_gaussian()) {
    return std::sqrt(std::max(0.0, max_eigenvalue(tilted_cov(Vector::Zero(dim())))));
  }
  const double inner = inner_.sub_gaussian();
  return std::isinf(inner) ? inner : numeric_sub_gaussian(*this);
}

}  // namespace esscher
