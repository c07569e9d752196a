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

// f(a) along one direction on a fine grid of radii: at most sigma^2.
double scanned(const AnyMeasure& mu, const Vector& u) {
  double best = 0;
  for (double r = 0.01; r < 10; r *= 1.001) {
    best = std::max(best, 2 * mu.centred_log_mgf(r * u) / (r * r));
  }
  return std::sqrt(best);
}

// An atom of weight 1e-6 at distance 30 in 100 dimensions: no sample shows it. Two atoms alone have
// sigma^2 = 900 (1 - 2p) / (2 log((1-p)/p)).
TEST(SubGaussian, FindsAFarRareAtom) {
  const Index d = 100;
  const double p = 1e-6;
  const Vector u = testing::zoo_vector(70, d).normalized();
  const AnyMeasure far = Empirical(Matrix(30 * u.transpose()));
  const AnyMeasure cloud = Gaussian(Matrix(Matrix::Identity(d, d)));
  const AnyMeasure law = Mixture(Vector{{1 - p, p}}, {cloud, far});
  const double want = scanned(law, u);
  const double two_atoms = std::sqrt((1 - 2 * p) / (2 * std::log((1 - p) / p)));
  EXPECT_GT(want, 30 * two_atoms);  // 5.7069
  EXPECT_TRUE(testing::close(law.sub_gaussian(), want, 1e-5));
  Matrix atoms = testing::zoo_matrix(71, 50, d);
  atoms.row(49) = 30 * u.transpose();
  Vector weights = Vector::Constant(50, (1 - p) / 49);
  weights(49) = p;
  const double distance = (atoms.row(49) - atoms.topRows(49).colwise().mean()).norm();
  EXPECT_GE(Empirical(atoms, weights).sub_gaussian(), distance * two_atoms * (1 - 1e-12));
  const AnyMeasure moved = Affine(Vector::Ones(d), Matrix(0.5 * Matrix::Identity(d, d)), law);
  EXPECT_TRUE(testing::close(moved.sub_gaussian(), 0.5 * want, 1e-5));
}

}  // namespace
}  // namespace esscher
