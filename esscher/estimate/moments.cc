#include "esscher/estimate/moments.h"

#include <cmath>
#include <limits>

namespace esscher {

void Moments::add(double x) {
  ++n_;
  const double delta = x - mean_;
  mean_ += delta / static_cast<double>(n_);
  m2_ += delta * (x - mean_);
}

void Moments::merge(const Moments& other) {
  if (other.n_ == 0) return;
  if (n_ == 0) {
    *this = other;
    return;
  }
  const double n = static_cast<double>(n_);
  const double m = static_cast<double>(other.n_);
  const double delta = other.mean_ - mean_;
  mean_ += delta * (m / (n + m));
  m2_ += other.m2_ + delta * delta * (n * m / (n + m));
  n_ += other.n_;
}

double Moments::variance() const { return n_ < 2 ? 0.0 : m2_ / static_cast<double>(n_ - 1); }

double Moments::std_error() const {
  if (n_ < 2) return std::numeric_limits<double>::infinity();
  return std::sqrt(variance() / static_cast<double>(n_));
}

Moments moments_of(std::span<const double> values) {
  Moments out;
  for (const double x : values) out.add(x);
  return out;
}

void CoMoments::add(const VectorView& x) {
  if (n_ == 0) {
    mean_ = Vector::Zero(x.size());
    m2_ = Matrix::Zero(x.size(), x.size());
  }
  ++n_;
  const Vector delta = x - mean_;
  mean_ += delta / static_cast<double>(n_);
  m2_ += delta * (x - mean_).transpose();
}

void CoMoments::merge(const CoMoments& other) {
  if (other.n_ == 0) return;
  if (n_ == 0) {
    *this = other;
    return;
  }
  const double n = static_cast<double>(n_);
  const double m = static_cast<double>(other.n_);
  const Vector delta = other.mean_ - mean_;
  mean_ += delta * (m / (n + m));
  m2_ += other.m2_ + delta * delta.transpose() * (n * m / (n + m));
  n_ += other.n_;
}

Matrix CoMoments::covariance_of_mean() const {
  if (n_ < 2) return Matrix::Zero(mean_.size(), mean_.size());
  return m2_ / (static_cast<double>(n_) * static_cast<double>(n_ - 1));
}

Estimate Moments::estimate(Engine engine) const { return {mean_, std_error(), n_, engine}; }

}  // namespace esscher
