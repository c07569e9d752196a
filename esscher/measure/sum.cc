#include "esscher/measure/sum.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/check.h"
#include "esscher/measure/sub_gaussian.h"

namespace esscher {

Sum::Sum(std::vector<AnyMeasure> parts) : parts_(std::move(parts)) {
  if (parts_.empty()) throw_argument("sum", "parts", "empty", "at least one measure");
  for (const AnyMeasure& part : parts_) check_dimension("sum", "part", part.dim(), dim());
}

Vector Sum::mean() const {
  Vector out = Vector::Zero(dim());
  for (const AnyMeasure& part : parts_) out += part.mean();
  return out;
}

// E zz' = m m' + sum_k (E z_k z_k' - m_k m_k').
Matrix Sum::second_moment() const {
  const Vector m = mean();
  Matrix out = m * m.transpose();
  for (const AnyMeasure& part : parts_) out += part.tilted_cov(Vector::Zero(dim()));
  return out;
}

double Sum::log_mgf(const VectorView& a) const {
  check_tilt("sum", a, dim());
  double out = 0;
  for (const AnyMeasure& part : parts_) out += part.log_mgf(a);
  return out;
}

double Sum::centred_log_mgf(const VectorView& a) const {
  check_tilt("sum", a, dim());
  double out = 0;
  for (const AnyMeasure& part : parts_) out += part.centred_log_mgf(a);
  return out;
}

Vector Sum::tilted_mean(const VectorView& a) const {
  check_tilt("sum", a, dim());
  Vector out = Vector::Zero(dim());
  for (const AnyMeasure& part : parts_) out += part.tilted_mean(a);
  return out;
}

Vector Sum::mean_shift(const VectorView& a) const {
  check_tilt("sum", a, dim());
  Vector out = Vector::Zero(dim());
  for (const AnyMeasure& part : parts_) out += part.mean_shift(a);
  return out;
}

Matrix Sum::tilted_cov(const VectorView& a) const {
  check_tilt("sum", a, dim());
  Matrix out = Matrix::Zero(dim(), dim());
  for (const AnyMeasure& part : parts_) out += part.tilted_cov(a);
  return out;
}

Vector Sum::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  check_tilt("sum", a, dim());
  check_dimension("sum", "v", v.size(), dim());
  Vector out = Vector::Zero(dim());
  for (const AnyMeasure& part : parts_) out += part.tilted_cov_times(a, v);
  return out;
}

HigherCumulants Sum::higher_cumulants(const VectorView& a, const MatrixView& W,
                                      const MatrixView& Y) const {
  check_tilt("sum", a, dim());
  HigherCumulants out = no_higher_cumulants(dim());
  for (const AnyMeasure& part : parts_) out += part.higher_cumulants(a, W, Y);
  return out;
}

Empirical Sum::sample(const Stream& stream, Index n) const {
  check_sample_size("sum", n);
  Matrix tokens = Matrix::Zero(n, dim());
  std::uint64_t child = 0;
  for (const AnyMeasure& part : parts_) {
    tokens += part.sample(stream.split(child++), n).tokens();
  }
  return Empirical(std::move(tokens));
}

double Sum::sub_gaussian() const {
  if (strictly_sub_gaussian()) {
    return std::sqrt(std::max(0.0, max_eigenvalue(tilted_cov(Vector::Zero(dim())))));
  }
  for (const AnyMeasure& part : parts_) {
    const double sigma = part.sub_gaussian();
    if (std::isinf(sigma)) return sigma;
  }
  return numeric_sub_gaussian(*this);
}

bool Sum::strictly_sub_gaussian() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const AnyMeasure& part) { return part.strictly_sub_gaussian(); });
}

}  // namespace esscher
