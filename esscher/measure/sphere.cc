#include "esscher/measure/sphere.h"

#include <cmath>
#include <span>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/bessel_tilt.h"
#include "esscher/measure/check.h"
#include "esscher/measure/empirical.h"

namespace esscher {

RadialMeasure::RadialMeasure(const char* name, Index dim, double radius, Index sphere_dim)
    : name_(name),
      dim_(checked_dim(name, dim)),
      radius_(checked_positive(name, "radius", radius)),
      sphere_dim_(sphere_dim) {}

Sphere::Sphere(Index dim, double radius) : RadialMeasure("sphere", dim, radius, dim) {}
Ball::Ball(Index dim, double radius) : RadialMeasure("ball", dim, radius, dim + 2) {}

Matrix RadialMeasure::second_moment() const {
  return (radius_ * radius_ / static_cast<double>(sphere_dim_)) * Matrix::Identity(dim_, dim_);
}

double RadialMeasure::log_mgf(const VectorView& a) const {
  check_tilt(name_, a, dim_);
  return bessel_tilt(sphere_dim_, radius_ * a.stableNorm()).log_mgf;
}

Vector RadialMeasure::tilted_mean(const VectorView& a) const {
  check_tilt(name_, a, dim_);
  const BesselTilt tilt = bessel_tilt(sphere_dim_, radius_ * a.stableNorm());
  return (radius_ * tilt.across) * (radius_ * a);
}

Matrix RadialMeasure::tilted_cov(const VectorView& a) const {
  check_tilt(name_, a, dim_);
  const double norm = a.stableNorm();
  const BesselTilt tilt = bessel_tilt(sphere_dim_, radius_ * norm);
  const double square = radius_ * radius_;
  if (norm == 0) return (square * tilt.across) * Matrix::Identity(dim_, dim_);
  const Vector u = a / norm;
  const Vector u2 = u.cwiseAbs2();
  Matrix cov = u * u.transpose();  // scaled afterwards, so that it is exactly symmetric
  cov *= square * (tilt.along - tilt.across);
  // along is below across by a factor k. 1 - u_i^2 is the sum of the other squares, so that a tilt
  // along an axis has its own variance to the last digits.
  for (Index i = 0; i < dim_; ++i) {
    const double others = u2.head(i).sum() + u2.tail(dim_ - 1 - i).sum();
    cov(i, i) = square * (tilt.across * others + tilt.along * u2(i));
  }
  return cov;
}

Vector RadialMeasure::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  check_tilt(name_, a, dim_);
  check_dimension(name_, "v", v.size(), dim_);
  const double norm = a.stableNorm();
  const BesselTilt tilt = bessel_tilt(sphere_dim_, radius_ * norm);
  const double square = radius_ * radius_;
  if (dim_ == 1) return (square * tilt.along) * v;
  if (norm == 0) return (square * tilt.across) * v;
  const Vector u = a / norm;
  const double inner = u.dot(v) / u.squaredNorm();
  // Projected twice: what rounding leaves along u would be taken for a part across.
  Vector across = v - inner * u;
  across -= u.dot(across) * u;
  return square * (tilt.across * across + (tilt.along * inner) * u);
}

// In the basis of u = a/|a| and directions across it. w and y are u'Wu and u'Yu, the traces across u
// are tr W - w and tr Y - y.
HigherCumulants RadialMeasure::higher_cumulants(const VectorView& a, const MatrixView& W,
                                                const MatrixView& Y) const {
  check_tilt(name_, a, dim_);
  const double norm = a.stableNorm();
  const BesselCumulants kappa = bessel_cumulants(sphere_dim_, radius_ * norm);
  const Vector u = norm > 0 ? Vector(a / norm) : Vector(Vector::Unit(dim_, 0));
  const Vector Wu = W * u, Yu = Y * u;
  const double w = u.dot(Wu), y = u.dot(Yu);
  const double trace_w = W.trace() - w, trace_y = Y.trace() - y;
  const Vector w_across = Wu - w * u, y_across = Yu - y * u;
  const double both_across = W.cwiseProduct(Y).sum() - 2 * Wu.dot(Yu) + w * y;
  const double cube = radius_ * radius_ * radius_;
  const auto third = [&](double along, double trace, const Vector& across) -> Vector {
    return cube * ((kappa.along3 * along + kappa.mixed3 * trace) * u + 2 * kappa.mixed3 * across);
  };
  return {third(w, trace_w, w_across), third(y, trace_y, y_across),
          cube * radius_ *
              (kappa.along4 * w * y +
               kappa.mixed4 * (w * trace_y + y * trace_w + 4 * w_across.dot(y_across)) +
               kappa.across4 * (trace_w * trace_y + 2 * both_across))};
}

Empirical RadialMeasure::sample(const Stream& stream, Index n) const {
  check_sample_size(name_, n);
  Matrix normals(n, sphere_dim_);
  stream.fill_normal(0,
                     std::span<double>(normals.data(), static_cast<std::size_t>(normals.size())));
  Matrix tokens(n, dim_);
  for (Index l = 0; l < n; ++l) {
    tokens.row(l) = normals.row(l).head(dim_) * (radius_ / normals.row(l).norm());
  }
  return Empirical(std::move(tokens));
}

double RadialMeasure::sub_gaussian() const {
  return radius_ / std::sqrt(static_cast<double>(sphere_dim_));
}

}  // namespace esscher
