// Closed forms against 100-digit arithmetic and against quadrature, |a| from 1e-12 to 1e4.
#include <gtest/gtest.h>

#include <boost/math/quadrature/tanh_sinh.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>

#include "esscher/esscher.h"
#include "esscher/measure/bessel_tilt.h"
#include "esscher/measure/scalar_forms.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using Real = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<100>,
                                           boost::multiprecision::et_off>;
using testing::close;

constexpr double kMeanTolerance = 1e-12;  // Lambda and means
constexpr double kCovTolerance = 1e-10;
constexpr double kSmallest = 1e-290;  // below, doubles lose digits themselves

const std::vector<double>& strengths() {
  static const std::vector<double> list = [] {
    std::vector<double> out;
    for (double a = 1e-12; a <= 1.1e4; a *= std::pow(10.0, 0.25)) out.push_back(a);
    for (const double edge : {0.5, 0.9999999, 1.0, 1.9999999, 2.0, 49.99, 50.01, 1e4}) {
      out.push_back(edge);
    }
    return out;
  }();
  return list;
}

struct Truth {
  double log_mgf, mean, variance;
};

Truth rademacher_truth(double a) {
  const Real x = a;
  const Real c = cosh(x);
  return {static_cast<double>(log(c)), static_cast<double>(sinh(x) / c),
          static_cast<double>(1 / (c * c))};
}

Truth uniform_truth(double a) {
  const Real x = a;
  const Real s = sinh(x);
  return {static_cast<double>(log(s / x)), static_cast<double>(cosh(x) / s - 1 / x),
          static_cast<double>(1 / (x * x) - 1 / (s * s))};
}

// sum_j x^j / (j! (c)_j)
Real hypergeometric_0f1(const Real& c, const Real& x) {
  Real term = 1;
  Real sum = 1;
  for (int j = 0; j < 100000; ++j) {
    term *= x / ((j + 1) * (c + j));
    sum += term;
    if (term < sum * Real("1e-100")) break;
  }
  return sum;
}

struct RadialTruth {
  double log_mgf, across, along;
};

RadialTruth radial_truth(Index d, double k) {
  const Real c = Real(d) / 2;
  const Real x = Real(k) * k / 4;
  const Real F = hypergeometric_0f1(c, x);
  const Real across = hypergeometric_0f1(c + 1, x) / (F * d);
  const Real A = across * k;
  return {static_cast<double>(log(F)), static_cast<double>(across),
          static_cast<double>(1 - A * A - (d - 1) * across)};
}

void check_coordinate(const AnyMeasure& mu, double a, const Truth& want) {
  const Vector at = Vector::Constant(1, a);
  EXPECT_TRUE(close(mu.log_mgf(at), want.log_mgf, kMeanTolerance)) << mu.name() << " a=" << a;
  EXPECT_TRUE(close(mu.tilted_mean(at)(0), want.mean, kMeanTolerance)) << mu.name() << " a=" << a;
  EXPECT_TRUE(close(mu.tilted_cov(at)(0, 0), want.variance, kCovTolerance, kSmallest))
      << mu.name() << " a=" << a;
  EXPECT_TRUE(close(mu.tilted_cov_times(at, at)(0), want.variance * a, kCovTolerance, kSmallest));
  EXPECT_EQ(mu.tilted_mean(-at)(0), -mu.tilted_mean(at)(0));
}

TEST(ClosedForm, RademacherAndUniformMatchHighPrecision) {
  for (const double a : strengths()) {
    check_coordinate(Rademacher(1), a, rademacher_truth(a));
    check_coordinate(Sphere(1, 1), a, rademacher_truth(a));
    check_coordinate(Uniform(1), a, uniform_truth(a));
    check_coordinate(Ball(1, 1), a, uniform_truth(a));
  }
}

TEST(ClosedForm, RademacherTailIsNotLostBeforeUnderflow) {
  for (const double a : {20.0, 100.0, 300.0, 350.0}) {
    EXPECT_TRUE(close(sech_squared(a), rademacher_truth(a).variance, 1e-14)) << a;
  }
}

TEST(ClosedForm, LaplaceMatchesHighPrecisionUpToTheEdge) {
  for (const double b : {0.3, 1.0, 7.0}) {
    for (const double x : {1e-12, 1e-6, 1e-3, 0.1, 0.49, 0.51, 0.9, 0.999999}) {
      const double a = x / b;
      const Real ba = Real(b) * Real(a);
      const Real gap = 1 - ba * ba;
      const Truth want{static_cast<double>(-log(gap)), static_cast<double>(2 * b * ba / gap),
                       static_cast<double>(2 * Real(b) * b * (1 + ba * ba) / (gap * gap))};
      check_coordinate(Laplace(1, b), a, want);
    }
  }
}

TEST(ClosedForm, SphereMatchesHighPrecisionSeries) {
  for (const Index d : {2, 3, 4, 5, 8, 33, 200}) {
    for (const double k : strengths()) {
      const RadialTruth want = radial_truth(d, k);
      const BesselTilt got = bessel_tilt(d, k);
      EXPECT_TRUE(close(got.log_mgf, want.log_mgf, kMeanTolerance)) << "d=" << d << " k=" << k;
      EXPECT_TRUE(close(got.across, want.across, kMeanTolerance)) << "d=" << d << " k=" << k;
      EXPECT_TRUE(close(got.along, want.along, kCovTolerance)) << "d=" << d << " k=" << k;
    }
  }
}

// Large dimension: the sum that starts at its largest term takes over.
TEST(ClosedForm, SphereSeriesFromThePeakAgreesWithHankel) {
  const Index d = 700;
  for (const double k : {2e5, 4.8e5}) {  // 4 (d/2)^2 = 490000
    const BesselTilt got = bessel_tilt(d, k);
    // A' = 1 - A^2 - (d-1) A/k holds to the rounding of its terms.
    const double A = got.across * k;
    EXPECT_TRUE(close(got.along, 1 - A * A - (d - 1) * got.across, 1e-13, 1.0));
    // Lambda' = A by a difference.
    const double slope = (bessel_tilt(d, k + 1).log_mgf - bessel_tilt(d, k - 1).log_mgf) / 2;
    EXPECT_TRUE(close(slope, A, 1e-9));
  }
  const BesselTilt below = bessel_tilt(d, 489999.999);
  const BesselTilt above = bessel_tilt(d, 490000.001);
  EXPECT_TRUE(close(below.log_mgf, above.log_mgf, 1e-8));
  EXPECT_TRUE(close(below.along, above.along, 1e-8));
}

TEST(ClosedForm, SphereAndBallMatchQuadratureOverTheirDensity) {
  boost::math::quadrature::tanh_sinh<double> integrate;
  for (const Index d : {2, 3, 5}) {
    for (const double k : {0.3, 2.0, 15.0}) {
      // First coordinate t has density (1-t^2)^{(d-3)/2} on the sphere, (d-1)/2 on the ball.
      for (const bool ball : {false, true}) {
        const double power = 0.5 * static_cast<double>(d - (ball ? 1 : 3));
        const auto moment = [&](int n) {
          return integrate.integrate(
              [&](double t, double gap) {  // gap = distance to the nearer end, exact near it
                const double edge = std::abs(gap) * (2 - std::abs(gap));
                return std::pow(t, n) * std::exp(k * (t - 1)) * std::pow(edge, power);
              },
              -1.0, 1.0);
        };
        const double Z = moment(0);
        const double mean = moment(1) / Z;
        const double variance = moment(2) / Z - mean * mean;
        const double norm = integrate.integrate(
            [&](double, double gap) {
              return std::pow(std::abs(gap) * (2 - std::abs(gap)), power);
            },
            -1.0, 1.0);
        const double R = 1.7;
        const AnyMeasure mu = ball ? AnyMeasure(Ball(d, R)) : AnyMeasure(Sphere(d, R));
        const Vector a = (k / R) * Vector::Unit(d, 0);
        EXPECT_TRUE(close(mu.log_mgf(a), k + std::log(Z / norm), 1e-10)) << d << " " << k;
        EXPECT_TRUE(close(mu.tilted_mean(a)(0), R * mean, 1e-10)) << d << " " << k;
        EXPECT_TRUE(close(mu.tilted_cov(a)(0, 0), R * R * variance, 1e-9)) << d << " " << k;
        const double across = (1 - (moment(2) / Z)) / static_cast<double>(d - 1);
        if (!ball) {
          EXPECT_TRUE(close(mu.tilted_cov(a)(1, 1), R * R * across, 1e-9));
        }
      }
    }
  }
}

// Discrete laws: the defining sums in 100 digits.
struct DiscreteTruth {
  double log_mgf;
  Vector mean;
  Matrix cov;
};

DiscreteTruth discrete_truth(const Matrix& tokens, const Vector& weights, const Vector& a) {
  const Index n = tokens.rows();
  const Index d = tokens.cols();
  std::vector<Real> mass(n), mean(d, Real(0));
  Real Z = 0, total = 0;
  for (Index l = 0; l < n; ++l) {
    Real score = 0;
    for (Index i = 0; i < d; ++i) score += Real(tokens(l, i)) * a(i);
    mass[l] = Real(weights(l)) * exp(score);
    Z += mass[l];
    total += weights(l);
  }
  for (Index l = 0; l < n; ++l) {
    for (Index i = 0; i < d; ++i) mean[i] += mass[l] / Z * tokens(l, i);
  }
  DiscreteTruth out{static_cast<double>(log(Z / total)), Vector(d), Matrix(d, d)};
  for (Index i = 0; i < d; ++i) {
    out.mean(i) = static_cast<double>(mean[i]);
    for (Index j = 0; j < d; ++j) {
      Real sum = 0;
      for (Index l = 0; l < n; ++l) {
        sum += mass[l] / Z * (tokens(l, i) - mean[i]) * (tokens(l, j) - mean[j]);
      }
      out.cov(i, j) = static_cast<double>(sum);
    }
  }
  return out;
}

void check_discrete(const AnyMeasure& mu, const Matrix& tokens, const Vector& weights,
                    const Vector& direction) {
  for (const double size : strengths()) {
    const Vector a = size * direction;
    const DiscreteTruth want = discrete_truth(tokens, weights, a);
    EXPECT_TRUE(close(mu.log_mgf(a), want.log_mgf, kMeanTolerance)) << mu.name() << " " << size;
    EXPECT_TRUE(close(mu.tilted_mean(a), want.mean, kMeanTolerance)) << mu.name() << " " << size;
    EXPECT_TRUE(close(mu.tilted_cov(a), want.cov, kCovTolerance, kSmallest))
        << mu.name() << " " << size;
    EXPECT_TRUE(close(mu.tilted_cov_times(a, direction), want.cov * direction, kCovTolerance,
                      kSmallest + 1e-4 * want.cov.cwiseAbs().maxCoeff()))
        << mu.name() << " " << size;
  }
}

TEST(ClosedForm, EmpiricalAndCategoricalMatchHighPrecision) {
  Matrix tokens(5, 2);
  tokens << 0.7, -0.2, 1.1, 0.4, -0.3, 2.0, 0.1, 0.1, -1.5, 0.6;
  Vector weights(5);
  weights << 0.125, 0.25, 0.125, 0.375, 0.125;
  Vector u(2);
  u << 0.6, -0.8;
  check_discrete(Empirical(tokens), tokens, Vector::Ones(5), u);
  check_discrete(Empirical(tokens, weights), tokens, weights, u);

  // Centred: Lambda is of the order of |a|^2, 1e-24 at the smallest tilt.
  Matrix centred(6, 2);
  centred << tokens.topRows(3), -tokens.topRows(3);
  check_discrete(Empirical(centred), centred, Vector::Ones(6), u);

  Vector p(3);
  p << 0.5, 0.125, 0.375;
  Vector v(3);
  v << 0.25, -0.5, 0.75;
  check_discrete(Categorical(p), Matrix::Identity(3, 3), p, v);
}

TEST(ClosedForm, MixtureOfDiscreteLawsMatchesHighPrecision) {
  Matrix left(2, 2), right(3, 2), all(5, 2);
  left << 1, 0.5, -1, -0.5;
  right << 0.25, 1, -0.75, -1.5, 0.5, 0.5;
  all << left, right;
  Vector weights(5);
  weights << 0.125, 0.125, 0.25, 0.25, 0.25;
  Vector u(2);
  u << 0.8, 0.6;
  Vector mix(2);
  mix << 1, 3;
  check_discrete(Mixture(mix, {Empirical(left), Empirical(right)}), all, weights, u);
}

// Symmetric mixture of N(+-m, G): Lambda = a'Ga/2 + log cosh(a'm), centred.
TEST(ClosedForm, SymmetricGaussianMixtureKeepsRelativeAccuracy) {
  Matrix G(2, 2);
  G << 1, 0.25, 0.25, 0.5;
  Vector m(2);
  m << 1.25, -0.5;
  Vector u(2);
  u << 0.6, 0.8;
  const Mixture mu(Vector::Ones(2), {Gaussian(m, G), Gaussian(-m, G)});
  for (const double size : strengths()) {
    const Vector a = size * u;
    const Truth pair = rademacher_truth(a.dot(m));
    const double gaussian = 0.5 * a.dot(G * a);
    EXPECT_TRUE(close(mu.log_mgf(a), gaussian + pair.log_mgf, kMeanTolerance)) << size;
    EXPECT_TRUE(close(mu.tilted_mean(a), G * a + pair.mean * m, kMeanTolerance)) << size;
    EXPECT_TRUE(close(mu.tilted_cov(a), G + pair.variance * m * m.transpose(), kCovTolerance))
        << size;
  }
}

}  // namespace
}  // namespace esscher
