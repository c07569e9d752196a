// sigma^2 = sup_a 2 (Lambda(a) - <a,m>)/|a|^2, against closed forms and dense scans.
#include "esscher/measure/sub_gaussian.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/testing.h"
#include "tests/zoo.h"

namespace esscher {
namespace {

using testing::close;
using testing::zoo;
using testing::zoo_matrix;
using testing::zoo_vector;

Vector pair(double x, double y) {
  Vector out(2);
  out << x, y;
  return out;
}

TEST(SubGaussian, BoundsTheLogMgfOfEveryMeasure) {
  for (const auto& [label, mu] : zoo()) {
    const double sigma = mu.sub_gaussian();
    if (std::isinf(sigma)) continue;
    for (std::uint64_t seed = 70; seed < 90; ++seed) {
      for (const double size : {1e-3, 0.1, 1.0, 3.0, 30.0}) {
        const Vector a = size * zoo_vector(seed, mu.dim());
        EXPECT_LE(mu.centred_log_mgf(a), 0.5 * sigma * sigma * a.squaredNorm() * (1 + 1e-9))
            << label << " size " << size;
      }
    }
    // And it is no larger than needed: some tilt reaches it, at least in the limit 0.
    const Matrix cov = mu.tilted_cov(Vector::Zero(mu.dim()));
    EXPECT_GE(sigma * sigma, max_eigenvalue(cov) * (1 - 1e-12)) << label;
  }
}

TEST(SubGaussian, ClosedForms) {
  EXPECT_TRUE(close(Gaussian(Matrix(pair(4, 9).asDiagonal())).sub_gaussian(), 3, 1e-14));
  EXPECT_TRUE(close(Rademacher(4).sub_gaussian(), 1, 1e-15));
  EXPECT_TRUE(close(Uniform(4).sub_gaussian(), 1 / std::sqrt(3.0), 1e-15));
  EXPECT_TRUE(close(Sphere(4, 3).sub_gaussian(), 1.5, 1e-15));
  EXPECT_TRUE(close(Ball(7, 3).sub_gaussian(), 1, 1e-15));
  EXPECT_TRUE(std::isinf(Laplace(2, 1).sub_gaussian()));
  const AnyMeasure heavy = Laplace(2, 1);
  EXPECT_TRUE(std::isinf(Sum({heavy, Rademacher(2)}).sub_gaussian()));
  EXPECT_TRUE(std::isinf(Product({heavy, Rademacher(2)}).sub_gaussian()));
  EXPECT_TRUE(std::isinf(Mixture(Vector::Ones(2), {heavy, Rademacher(2)}).sub_gaussian()));
  EXPECT_TRUE(std::isinf(Affine(pair(0, 0), Matrix::Identity(2, 2), heavy).sub_gaussian()));
}

// Two asymmetric atoms (Kearns-Saul): sigma^2 = distance^2 (p - q) / (2 log(p/q)).
TEST(SubGaussian, TwoAtoms) {
  for (const double p : {0.5, 0.5000001, 0.6, 0.9, 0.99, 0.9999}) {
    const double q = 1 - p;
    const double bernoulli = p == 0.5 ? 0.25 : (p - q) / (2 * std::log(p / q));
    const double want = std::sqrt(2 * bernoulli);
    const Categorical two(pair(p, q));
    EXPECT_TRUE(close(two.sub_gaussian(), want, 1e-8)) << p;
    EXPECT_TRUE(close(numeric_sub_gaussian(two), want, 1e-8)) << p;
    const Empirical prompt(Matrix(pair(3, 1)), pair(p, q));
    EXPECT_TRUE(close(prompt.sub_gaussian(), 2 * std::sqrt(bernoulli), 1e-8)) << p;
  }
}

// Numeric search against the closed forms it does not know, and a dense scan in one dimension.
TEST(SubGaussian, NumericSearchFindsTheSupremum) {
  EXPECT_TRUE(close(numeric_sub_gaussian(Uniform(3)), 1 / std::sqrt(3.0), 1e-6));
  EXPECT_TRUE(close(numeric_sub_gaussian(Sphere(3, 2)), 2 / std::sqrt(3.0), 1e-6));
  const Matrix tokens = zoo_matrix(91, 6, 1).array().exp();
  const Empirical skewed(tokens);
  double best = 0;
  // Steps relative to t: wherever the maximum is, the scan is within (5e-4)^2 of it.
  for (double t = 1e-4; t <= 60; t *= 1.0005) {
    for (const double sign : {1.0, -1.0}) {
      const Vector a = Vector::Constant(1, sign * t);
      best = std::max(best, 2 * skewed.centred_log_mgf(a) / (t * t));
    }
  }
  EXPECT_TRUE(close(skewed.sub_gaussian(), std::sqrt(best), 1e-6));
}

}  // namespace
}  // namespace esscher
