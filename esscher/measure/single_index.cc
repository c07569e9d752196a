#include "esscher/measure/single_index.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/check.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/link_pair.h"
#include "esscher/measure/sub_gaussian.h"
#include "esscher/measure/sum.h"

namespace esscher {
namespace {

constexpr const char* kName = "single_index";

double checked_variance(double value) {
  if (!(value >= 0) || !std::isfinite(value)) {
    throw_argument(kName, "noise_variance", to_text(value), "a finite number >= 0");
  }
  return value;
}

// sqrt(w'Sigma w) by a factor of Sigma, so that it is 0 exactly where w'x is constant.
double index_deviation(const MatrixView& cov, const VectorView& index) {
  const Matrix F = psd_factor(kName, "cov", cov);
  checked_dim(kName, cov.rows());
  check_dimension(kName, "index", index.size(), cov.rows());
  check_finite(kName, "index", index);
  const double rho = (F.transpose() * index).norm();
  return rho <= 1e-14 * F.norm() * index.norm() ? 0 : rho;
}

// The covariance of (x, y) where y = slope w'x + noise.
Matrix linear_cov(const MatrixView& cov, const VectorView& index, double slope, double noise) {
  const Index d = index.size();
  const Vector cross = slope * (cov * index);
  Matrix out(d + 1, d + 1);
  out.topLeftCorner(d, d) = 0.5 * (cov + cov.transpose());
  out.topRightCorner(d, 1) = cross;
  out.bottomLeftCorner(1, d) = cross.transpose();
  out(d, d) = slope * index.dot(cross) + noise;
  return out;
}

AnyMeasure expand(const MatrixView& cov, const VectorView& index, const Link& link, double noise,
                  double rho) {
  const Index d = index.size();
  const Vector& c = link.coefficients();
  if (rho == 0 || (c.size() > 0 && c(2) == 0)) {
    Vector mean = Vector::Zero(d + 1);
    mean(d) = link(0);
    return Gaussian(mean, linear_cov(cov, index, rho == 0 ? 0 : c(1), noise));
  }
  const Vector along = cov * index / (rho * rho);
  Matrix B = Matrix::Zero(d + 1, 2);
  B.col(0).head(d) = along;
  B(d, 1) = 1;
  // What is independent of the index, F (I - ff'/rho^2) F' with f = F'w, is PSD also by rounding.
  const Matrix F = psd_factor(kName, "cov", cov);
  const Vector f = F.transpose() * index / rho;
  Matrix across = F - (F * f) * f.transpose();
  if (across.norm() <= 1e-14 * F.norm()) across.setZero();
  Matrix rest = Matrix::Zero(d + 1, d + 1);
  rest.topLeftCorner(d, d) = across * across.transpose();
  rest(d, d) = noise;
  return Sum({Affine(Vector::Zero(d + 1), B, LinkPair(rho, link)), Gaussian(rest)});
}

}  // namespace

SingleIndex::SingleIndex(const MatrixView& cov, const VectorView& index, Link link,
                         double noise_variance)
    : cov_(0.5 * (cov + cov.transpose())),
      index_(index),
      link_(std::move(link)),
      noise_variance_(checked_variance(noise_variance)),
      rho_(index_deviation(cov, index)),
      law_(expand(cov_, index_, link_, noise_variance_, rho_)) {}

double SingleIndex::log_mgf(const VectorView& a) const {
  check_tilt(kName, a, dim());
  return law_.log_mgf(a);
}

double SingleIndex::centred_log_mgf(const VectorView& a) const {
  check_tilt(kName, a, dim());
  return law_.centred_log_mgf(a);
}

Vector SingleIndex::tilted_mean(const VectorView& a) const {
  check_tilt(kName, a, dim());
  return law_.tilted_mean(a);
}

Vector SingleIndex::mean_shift(const VectorView& a) const {
  check_tilt(kName, a, dim());
  return law_.mean_shift(a);
}

Matrix SingleIndex::tilted_cov(const VectorView& a) const {
  check_tilt(kName, a, dim());
  return law_.tilted_cov(a);
}

Vector SingleIndex::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  check_tilt(kName, a, dim());
  check_dimension(kName, "v", v.size(), dim());
  return law_.tilted_cov_times(a, v);
}

HigherCumulants SingleIndex::higher_cumulants(const VectorView& a, const MatrixView& W,
                                              const MatrixView& Y) const {
  check_tilt(kName, a, dim());
  return law_.higher_cumulants(a, W, Y);
}

Empirical SingleIndex::sample(const Stream& stream, Index n) const {
  check_sample_size(kName, n);
  const Matrix x = Gaussian(cov_).sample(stream.split(0), n).tokens();
  Vector H(n), y(n), noise(n);
  for (Index l = 0; l < n; ++l) H(l) = x.row(l).dot(index_);
  const auto size = static_cast<std::size_t>(n);
  link_(std::span<const double>(H.data(), size), std::span<double>(y.data(), size));
  stream.split(1).fill_normal(0, std::span<double>(noise.data(), size));
  Matrix tokens(n, dim());
  tokens << x, y + std::sqrt(noise_variance_) * noise;
  return Empirical(std::move(tokens));
}

// Far out the law is one of two Gaussians, of the slopes of the link towards both ends.
double SingleIndex::sub_gaussian() const {
  if (link_.coefficients().size() > 0 && link_.coefficients()(2) != 0 && rho_ > 0) return HUGE_VAL;
  if (law_.strictly_sub_gaussian()) return law_.sub_gaussian();
  double largest = numeric_sub_gaussian(law_);
  for (const double slope : link_.far_slopes()) {
    const Matrix G = linear_cov(cov_, index_, slope, noise_variance_);
    largest = std::max(largest, std::sqrt(std::max(0.0, max_eigenvalue(G))));
  }
  return largest;
}

}  // namespace esscher
