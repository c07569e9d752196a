#include "esscher/measure/coordinates.h"

#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/bessel_tilt.h"
#include "esscher/measure/check.h"
#include "esscher/measure/empirical.h"
#include "esscher/measure/scalar_forms.h"

namespace esscher {

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}

template <class Coordinate>
IidCoordinates<Coordinate>::IidCoordinates(Index dim, Coordinate coordinate)
    : dim_(checked_dim(Coordinate::kName, dim)), coordinate_(coordinate) {}

template <class Coordinate>
void IidCoordinates<Coordinate>::check(const VectorView& a) const {
  check_tilt(Coordinate::kName, a, dim_);
  for (Index i = 0; i < dim_; ++i) {
    if (std::abs(a(i)) < coordinate_.bound()) continue;
    throw DomainError(std::string(Coordinate::kName) + ": a[" + std::to_string(i) + "] is " +
                      to_text(a(i)) + ", expected |a| < 1/b = " + to_text(coordinate_.bound()) +
                      " (the log-MGF is infinite outside)");
  }
}

template <class Coordinate>
Matrix IidCoordinates<Coordinate>::second_moment() const {
  return coordinate_.variance(0.0) * Matrix::Identity(dim_, dim_);
}

template <class Coordinate>
double IidCoordinates<Coordinate>::log_mgf(const VectorView& a) const {
  check(a);
  double sum = 0;
  for (Index i = 0; i < dim_; ++i) sum += coordinate_.log_mgf(a(i));
  return sum;
}

template <class Coordinate>
Vector IidCoordinates<Coordinate>::tilted_mean(const VectorView& a) const {
  check(a);
  return a.unaryExpr([this](double x) { return coordinate_.mean(x); });
}

template <class Coordinate>
Vector IidCoordinates<Coordinate>::variances(const VectorView& a) const {
  check(a);
  return a.unaryExpr([this](double x) { return coordinate_.variance(x); });
}

template <class Coordinate>
Matrix IidCoordinates<Coordinate>::tilted_cov(const VectorView& a) const {
  return variances(a).asDiagonal();
}

template <class Coordinate>
Vector IidCoordinates<Coordinate>::tilted_cov_times(const VectorView& a,
                                                    const VectorView& v) const {
  check_dimension(Coordinate::kName, "v", v.size(), dim_);
  return variances(a).cwiseProduct(v);
}

// Cumulants of independent coordinates are diagonal.
template <class Coordinate>
HigherCumulants IidCoordinates<Coordinate>::higher_cumulants(const VectorView& a,
                                                             const MatrixView& W,
                                                             const MatrixView& Y) const {
  check(a);
  HigherCumulants out = no_higher_cumulants(dim_);
  for (Index i = 0; i < dim_; ++i) {
    const double third = coordinate_.third(a(i));
    out.third_w(i) = W(i, i) * third;
    out.third_y(i) = Y(i, i) * third;
    out.fourth += W(i, i) * Y(i, i) * coordinate_.fourth(a(i));
  }
  return out;
}

namespace {

// Fills out with draws 0, 1, .. of the coordinate. Laws that read one uniform number without a
// logarithm take theirs from SIMD code; the bits are those of draw().
template <class Coordinate>
void fill_draws(const Coordinate& coordinate, const Stream& stream, std::span<double> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = coordinate.draw(stream, i);
}

void fill_draws(const UniformCoordinate& /*law*/, const Stream& stream, std::span<double> out) {
  stream.fill_uniform(0, out);
  for (double& x : out) x = 2 * x - 1;
}

// The sign of a draw is its top bit, which says whether the uniform number lies above 1/2.
void fill_draws(const RademacherCoordinate& /*law*/, const Stream& stream, std::span<double> out) {
  stream.fill_uniform(0, out);
  for (double& x : out) x = x > 0.5 ? 1.0 : -1.0;
}

}  // namespace

template <class Coordinate>
Empirical IidCoordinates<Coordinate>::sample(const Stream& stream, Index n) const {
  check_sample_size(Coordinate::kName, n);
  Matrix tokens(n, dim_);
  fill_draws(coordinate_, stream, {tokens.data(), static_cast<std::size_t>(tokens.size())});
  return Empirical(std::move(tokens));
}

template <class Coordinate>
double IidCoordinates<Coordinate>::sub_gaussian() const {
  return Coordinate::kStrict ? std::sqrt(coordinate_.variance(0.0)) : kInfinity;
}

double RademacherCoordinate::bound() const { return kInfinity; }
double RademacherCoordinate::log_mgf(double a) const { return log_cosh(a); }
double RademacherCoordinate::mean(double a) const { return std::tanh(a); }
double RademacherCoordinate::variance(double a) const { return sech_squared(a); }
double RademacherCoordinate::third(double a) const { return -2 * std::tanh(a) * variance(a); }
double RademacherCoordinate::fourth(double a) const {
  const double s = variance(a);
  return s * (4 - 6 * s);
}
double RademacherCoordinate::draw(const Stream& stream, std::uint64_t i) const {
  return stream.rademacher(i);
}

double UniformCoordinate::bound() const { return kInfinity; }
double UniformCoordinate::log_mgf(double a) const { return log_sinhc(a); }
double UniformCoordinate::mean(double a) const { return langevin(a); }
double UniformCoordinate::variance(double a) const { return langevin_derivative(a); }
// The uniform law on [-1,1] is one coordinate of the uniform law on the sphere of R^3.
double UniformCoordinate::third(double a) const {
  return std::copysign(bessel_cumulants(3, std::abs(a)).along3, -a);
}
double UniformCoordinate::fourth(double a) const { return bessel_cumulants(3, std::abs(a)).along4; }
double UniformCoordinate::draw(const Stream& stream, std::uint64_t i) const {
  return 2 * stream.uniform(i) - 1;
}

namespace {
// 1 - b^2a^2 = (1 - ba)(1 + ba). Each factor is rounded once, so the product is accurate at the
// edge of the domain too.
double domain_gap(double b, double a) { return std::fma(-b, a, 1.0) * std::fma(b, a, 1.0); }
}  // namespace

double LaplaceCoordinate::log_mgf(double a) const {
  const double x = std::abs(b * a);
  return x < 0.5 ? -std::log1p(-x * x) : -std::log(domain_gap(b, a));
}
double LaplaceCoordinate::mean(double a) const { return 2 * b * b * a / domain_gap(b, a); }
double LaplaceCoordinate::variance(double a) const {
  const double x = b * a;
  const double gap = domain_gap(b, a);
  return 2 * b * b * (1 + x * x) / (gap * gap);
}
// kappa_n = (n-1)! b^n ((1-x)^-n + (-1)^n (1+x)^-n), x = ba, over a common denominator.
double LaplaceCoordinate::third(double a) const {
  const double x = b * a;
  return 4 * std::pow(b / domain_gap(b, a), 3) * x * (3 + x * x);
}
double LaplaceCoordinate::fourth(double a) const {
  const double x2 = b * a * b * a;
  return 12 * std::pow(b / domain_gap(b, a), 4) * (1 + x2 * (6 + x2));
}
// Inverts the distribution function on each side of 0.
double LaplaceCoordinate::draw(const Stream& stream, std::uint64_t i) const {
  const double u = stream.uniform(i);
  return u < 0.5 ? b * std::log(2 * u) : -b * std::log(2 * (1 - u));
}

template class IidCoordinates<RademacherCoordinate>;
template class IidCoordinates<UniformCoordinate>;
template class IidCoordinates<LaplaceCoordinate>;

Rademacher::Rademacher(Index dim) : IidCoordinates(dim, {}) {}
Uniform::Uniform(Index dim) : IidCoordinates(dim, {}) {}
Laplace::Laplace(Index dim, double b)
    : IidCoordinates(dim, LaplaceCoordinate{checked_positive("laplace", "b", b)}) {}

}  // namespace esscher
