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
  const Vector u = norm > 0 ? Vector(a / norm) : Vector(Vector::Zero(dim_));
  const double square = radius_ * radius_;
  Matrix cov = u * u.transpose();  // scaled afterwards, so that it is exactly symmetric
  cov *= square * (tilt.along - tilt.across);
  cov.diagonal().array() += square * tilt.across;
  if (dim_ == 1) cov(0, 0) = square * tilt.along;
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
  const double inner = u.dot(v);
  return square * (tilt.across * (v - inner * u) + (tilt.along * inner) * u);
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
