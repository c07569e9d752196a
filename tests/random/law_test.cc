// Laws of the draws. Every statistic is compared at the suite's two-sided z = kSigmas (2e-9).
#include <gtest/gtest.h>

#include <Eigen/LU>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <numbers>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/random/draws.h"
#include "esscher/random/stream.h"
#include "esscher/random/wishart.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using testing::kSigmas;

double upper_tail(double x) { return 0.5 * std::erfc(x / std::numbers::sqrt2); }

template <class T>
std::vector<T> normals(std::uint64_t seed, std::size_t n) {
  std::vector<T> x(n);
  Stream(seed).fill_normal(0, std::span<T>(x));
  return x;
}

// Kolmogorov-Smirnov by counting in 4096 equiprobable-in-x cells; P(sqrt(n) D > 3.3) = 7e-10.
template <class T>
void check_normal_law(const std::vector<T>& x) {
  constexpr int kCells = 4096;
  const auto n = static_cast<double>(x.size());
  std::vector<double> count(kCells, 0.0);
  for (const T v : x) {
    const double cell = (static_cast<double>(v) + 8) / 16 * kCells;
    count[static_cast<std::size_t>(std::clamp(cell, 0.0, kCells - 1.0))] += 1;
  }
  double below = 0;
  double worst = 0;
  double chi = 0;
  int cells = 0;
  for (int c = 0; c + 1 < kCells; ++c) {
    const double lo = -8 + 16.0 * c / kCells;
    const double hi = lo + 16.0 / kCells;
    const double expected =
        n * std::abs(upper_tail(lo < 0 ? -hi : lo) - upper_tail(lo < 0 ? -lo : hi));
    if (expected > 50) {
      chi += std::pow(count[static_cast<std::size_t>(c)] - expected, 2) / expected;
      ++cells;
    }
    below += count[static_cast<std::size_t>(c)];
    worst = std::max(worst, std::abs(below / n - upper_tail(-hi)));
  }
  EXPECT_LT(std::sqrt(n) * worst, 3.3);
  const boost::math::chi_squared law(cells - 1);
  EXPECT_GT(boost::math::cdf(boost::math::complement(law, chi)), 1e-9);
  EXPECT_GT(boost::math::cdf(law, chi), 1e-9);
  // Tails: binomial counts beyond each point, both sides.
  for (const double at : {3.0, 4.0, 4.5, 5.0}) {
    double high = 0;
    double low = 0;
    for (const T v : x) {
      high += v > at;
      low += v < -at;
    }
    const double p = upper_tail(at);
    EXPECT_LT(std::abs(high - n * p), kSigmas * std::sqrt(n * p) + 2) << at;
    EXPECT_LT(std::abs(low - n * p), kSigmas * std::sqrt(n * p) + 2) << at;
  }
}

template <class T>
void check_independence_of_neighbours(const std::vector<T>& x) {
  const auto n = static_cast<double>(x.size());
  for (const std::size_t lag : {1UL, 2UL, 3UL, 4UL, 8UL}) {
    double product = 0;
    double squares = 0;
    for (std::size_t j = 0; j + lag < x.size(); ++j) {
      const auto a = static_cast<double>(x[j]);
      const auto b = static_cast<double>(x[j + lag]);
      product += a * b;
      squares += (a * a - 1) * (b * b - 1);
    }
    EXPECT_LT(std::abs(product), kSigmas * std::sqrt(n)) << lag;
    EXPECT_LT(std::abs(squares), kSigmas * 2 * std::sqrt(n)) << lag;
  }
}

TEST(Normal, DoubleLaw) {
  const auto x = normals<double>(11, 4'000'000);
  check_normal_law(x);
  check_independence_of_neighbours(x);
}

TEST(Normal, FloatLaw) {
  const auto x = normals<float>(12, 8'000'000);
  check_normal_law(x);
  check_independence_of_neighbours(x);
}

// The exponential moment E e^{tau x} reads the tail near tau: what the sampled engine relies on.
TEST(Normal, ExponentialMomentsOfTheTails) {
  const auto x = normals<double>(13, 4'000'000);
  const auto y = normals<float>(14, 4'000'000);
  for (const double tau : {0.5, 1.0, 2.0}) {
    const auto check = [&](const auto& values) {
      double sum = 0;
      for (const auto v : values) sum += std::exp(tau * static_cast<double>(v) - tau * tau / 2);
      const auto n = static_cast<double>(values.size());
      const Estimate e{sum / n, std::sqrt(std::expm1(tau * tau) / n), 1, Engine::direct};
      EXPECT_TRUE(agrees(e, 1.0)) << tau;
    };
    check(x);
    check(y);
  }
}

// Both generators against the textbook formula in long double on the same bits.
TEST(Normal, ErrorsAreAsStated) {
  const Stream s(77, 1);
  constexpr long double kPi = std::numbers::pi_v<long double>;
  for (std::uint64_t b = 0; b < 100'000; ++b) {
    const std::uint64_t angle = s.bits(2 * b + 1);
    const long double u = (static_cast<long double>(s.bits(2 * b) >> 12) + 0.5L) * 0x1p-52L;
    const long double phi =
        ((static_cast<long double>(angle & 0xFFFFFFFFFFFFFULL) + 0.5L) * 0x1p-51L - 1) * kPi / 4;
    const long double rho = std::sqrt(-std::log(u));
    const long double even = rho * (std::cos(phi) - std::sin(phi)) * ((angle >> 63) != 0 ? -1 : 1);
    ASSERT_NEAR(s.normal(2 * b), static_cast<double>(even), 1e-15);
    const Stream::Block w = s.block(b);
    const long double u32 =
        (static_cast<long double>(w[0] >> 1) + (((w[1] >> 2) & 255) + 0.5L) / 256) * 0x1p-31L;
    const long double phi32 =
        (static_cast<long double>(static_cast<std::int32_t>(w[1]) >> 10) + 0.5L) * 0x1p-21L * kPi /
        4;
    const long double odd = std::sqrt(-std::log(u32)) * (std::cos(phi32) + std::sin(phi32)) *
                            ((w[1] & 1) != 0 ? -1 : 1);
    ASSERT_NEAR(s.normal32(4 * b + 1), static_cast<double>(odd),
                u32 < 0.999 ? 2e-6 : 1e-4);  // near u = 1 the grid of floats is the error
  }
}

TEST(Sphere, OnTheSphereAndIsotropic) {
  constexpr int n = 20'000;
  std::vector<double> p(3);
  Vector sum = Vector::Zero(3);
  Matrix second = Matrix::Zero(3, 3);
  for (int i = 0; i < n; ++i) {
    sphere_point(Stream(5), static_cast<std::uint64_t>(i), 2.0, p);
    const Eigen::Map<const Vector> v(p.data(), 3);
    ASSERT_TRUE(close(v.norm(), 2.0, 1e-14));
    sum += v;
    second += v * v.transpose();
  }
  for (int a = 0; a < 3; ++a) {
    EXPECT_LT(std::abs(sum(a)), kSigmas * std::sqrt(n * 4.0 / 3));
    // Var of v_a^2 on the radius-2 sphere: 16 (1/5 - 1/9).
    EXPECT_LT(std::abs(second(a, a) - n * 4.0 / 3), kSigmas * std::sqrt(n * 16 * (0.2 - 1.0 / 9)));
  }
}

TEST(Categorical, FrequenciesAndEdges) {
  const CategoricalDraw draw((Vector(5) << 0, 1, 0, 3, 0).finished());
  double ones = 0;
  constexpr int n = 40'000;
  for (int i = 0; i < n; ++i) {
    const Index k = draw(Stream(6).uniform(static_cast<std::uint64_t>(i)));
    ASSERT_TRUE(k == 1 || k == 3);
    ones += k == 1;
  }
  EXPECT_LT(std::abs(ones - n * 0.25), kSigmas * std::sqrt(n * 0.25 * 0.75));
  EXPECT_EQ(draw(1.0), 3);
  EXPECT_EQ(draw(0.0), 1);
  EXPECT_THROW(CategoricalDraw((Vector(2) << 1, -1).finished()), ArgumentError);
  EXPECT_THROW(CategoricalDraw(Vector::Zero(2)), ArgumentError);
}

TEST(ChiSquare, MomentsFromTinyToHugeDegrees) {
  constexpr int n = 20'000;
  for (const double dof : {0.5, 1.0, 2.0, 7.0, 1e3, 1e9, 1e15}) {
    double sum = 0;
    double square = 0;
    double cube = 0;
    for (int i = 0; i < n; ++i) {
      const double x = chi_square_draw(Stream(8).split(static_cast<std::uint64_t>(i)), dof);
      ASSERT_GE(x, 0);
      const double z = (x - dof) / std::sqrt(2 * dof);
      sum += z;
      square += z * z;
      cube += z * z * z;
    }
    const double kurtosis = 3 + 12 / dof;
    EXPECT_LT(std::abs(sum), kSigmas * std::sqrt(n)) << dof;
    EXPECT_LT(std::abs(square - n), kSigmas * std::sqrt(n * (kurtosis - 1))) << dof;
    // Var z^3 <= E z^6; 15 for a normal, larger for few degrees of freedom.
    const double sixth = 15 + 130 * 2 / dof + 40 * 8 / dof / dof * 4;
    EXPECT_LT(std::abs(cube - n * std::sqrt(8 / dof)), kSigmas * std::sqrt(n * sixth)) << dof;
  }
}

TEST(Wishart, MeanAndVarianceForAnyLengthAndRank) {
  Matrix F(3, 2);  // a singular covariance
  F << 1, 0, 0.5, 1, -1, 2;
  const Matrix G = F * F.transpose();
  for (const std::int64_t L : {1L, 2L, 5L, 1'000'000L, 1'000'000'000'000'000L}) {
    constexpr int n = 20'000;
    Matrix sum = Matrix::Zero(3, 3);
    for (int i = 0; i < n; ++i) {
      const Matrix W = wishart_mean(Stream(9).split(static_cast<std::uint64_t>(i)), F, L);
      sum += W;
    }
    for (Index a = 0; a < 3; ++a) {
      for (Index b = 0; b < 3; ++b) {
        const double variance = (G(a, a) * G(b, b) + G(a, b) * G(a, b)) / static_cast<double>(L);
        const Estimate e{sum(a, b) / n, std::sqrt(variance / n) + 1e-15 * G.norm(), n,
                         Engine::sampled};
        EXPECT_TRUE(agrees(e, G(a, b))) << L << " " << a << " " << b;
      }
    }
  }
  EXPECT_EQ(bartlett_factor(Stream(1), 4, 2).cols(), 2);  // L < k: rank L
  EXPECT_THROW(bartlett_factor(Stream(1), 4, 0), ArgumentError);
}

// The determinant of the Gram reads all chi-squares: E det = det(G) L(L-1)/L^2 in two dimensions.
TEST(Wishart, DeterminantMean) {
  Matrix F(2, 2);
  F << 1, 0, 0.3, 0.7;
  constexpr int n = 40'000;
  double sum = 0;
  double square = 0;
  for (int i = 0; i < n; ++i) {
    const double det =
        wishart_mean(Stream(10).split(static_cast<std::uint64_t>(i)), F, 5).determinant();
    sum += det;
    square += det * det;
  }
  const double mean = sum / n;
  const Estimate e{mean, std::sqrt((square / n - mean * mean) / n), n, Engine::sampled};
  EXPECT_TRUE(agrees(e, 0.49 * 0.8));
}

}  // namespace
}  // namespace esscher
