// Samples against closed forms: moments and tilted means, and the prefix property.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/testing.h"
#include "tests/zoo.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using testing::zoo;
using testing::zoo_vector;

constexpr Index kTokens = 20000;

Estimate mean_of(const Vector& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = values.mean();
  const double variance = (values.array() - mean).square().sum() / (n - 1);
  return {mean, std::sqrt(variance / n), values.size(), Engine::direct};
}

// A comparison of numbers that do not vary is exact up to rounding.
::testing::AssertionResult matches(const Vector& values, double truth) {
  const Estimate estimate = mean_of(values);
  if (estimate.std_error < 1e-12) return close(estimate.value, truth, 1e-12, 1.0);
  return agrees(estimate, truth);
}

TEST(Sampling, MomentsAgreeWithClosedForms) {
  for (const auto& [label, mu] : zoo()) {
    const Matrix tokens = mu.sample(Stream(11), kTokens).tokens();
    const Vector mean = mu.mean();
    const Matrix second = mu.second_moment();
    for (Index i = 0; i < mu.dim(); ++i) {
      EXPECT_TRUE(matches(tokens.col(i), mean(i))) << label << " coordinate " << i;
      for (Index j = 0; j <= i; ++j) {
        EXPECT_TRUE(matches(tokens.col(i).cwiseProduct(tokens.col(j)), second(i, j)))
            << label << " entry " << i << "," << j;
      }
    }
  }
}

// E[e^{<a,z> - Lambda}] = 1 and E[e^{<a,z> - Lambda} (z - m_a)] = 0: the whole tilt, unbiased.
TEST(Sampling, TiltedMeansAgreeWithClosedForms) {
  for (const auto& [label, mu] : zoo()) {
    const Matrix tokens = mu.sample(Stream(12), kTokens).tokens();
    const Vector a = 0.4 * zoo_vector(60, mu.dim());
    const Vector m = mu.tilted_mean(a);
    const Vector weight = ((tokens * a).array() - mu.log_mgf(a)).exp();
    EXPECT_TRUE(matches(weight, 1)) << label;
    for (Index i = 0; i < mu.dim(); ++i) {
      EXPECT_TRUE(matches(weight.array() * (tokens.col(i).array() - m(i)), 0)) << label;
    }
  }
}

TEST(Sampling, ShorterSamplesArePrefixes) {
  for (const auto& [label, mu] : zoo()) {
    const Stream stream(13, 5);
    const Matrix full = mu.sample(stream, 37).tokens();
    for (const Index n : {1, 2, 7, 36}) {
      EXPECT_TRUE(close(mu.sample(stream, n).tokens(), full.topRows(n), 0)) << label << " " << n;
    }
    if (mu.tilted_cov(Vector::Zero(mu.dim())).isZero(0)) continue;  // nothing is random
    EXPECT_FALSE(close(mu.sample(stream.split(1), 37).tokens(), full, 0)) << label;
  }
}

// Samples are filled by SIMD code and without a temporary per token; these draw them one by one.
TEST(Sampling, TokensAreThoseOfTheStreamOneByOne) {
  const Stream stream(21, 4);
  constexpr Index kMany = 101;
  const Matrix signs = Rademacher(3).sample(stream, kMany).tokens();
  const Matrix uniforms = Uniform(3).sample(stream, kMany).tokens();
  for (Index i = 0; i < signs.size(); ++i) {
    const auto k = static_cast<std::uint64_t>(i);
    EXPECT_EQ(signs.data()[i], stream.rademacher(k)) << i;
    EXPECT_EQ(uniforms.data()[i], 2 * stream.uniform(k) - 1) << i;
  }
  for (const Index d : {1, 2, 7, 8, 19}) {
    const Vector c = Vector::LinSpaced(d, -1, 2);
    const Matrix B = Matrix::Identity(d, d) + Matrix::Constant(d, d, 0.3);
    const Gaussian normal(Matrix::Identity(d, d));
    const Matrix z = normal.sample(stream, kMany).tokens();
    const Matrix images = Affine(c, B, normal).sample(stream, kMany).tokens();
    const Matrix expected = (z * B.transpose()).rowwise() + c.transpose();
    EXPECT_TRUE(close(images, expected, 1e-15 * static_cast<double>(d))) << d;
    for (Index i = 0; i < z.size(); ++i)
      EXPECT_EQ(z.data()[i], stream.normal(static_cast<std::uint64_t>(i))) << d << " " << i;
  }
}

TEST(Sampling, TokensLieOnTheSupport) {
  const Matrix sphere = Sphere(4, 2.5).sample(Stream(14), 200).tokens();
  EXPECT_TRUE(close(sphere.rowwise().norm(), Vector::Constant(200, 2.5), 1e-14));
  const Matrix ball = Ball(4, 2.5).sample(Stream(14), 200).tokens();
  EXPECT_LE(ball.rowwise().norm().maxCoeff(), 2.5);
  EXPECT_TRUE(
      close(Rademacher(3).sample(Stream(14), 50).tokens().cwiseAbs(), Matrix::Ones(50, 3), 0));
  EXPECT_LT(Uniform(3).sample(Stream(14), 50).tokens().cwiseAbs().maxCoeff(), 1);
  Vector p(3);
  p << 0.5, 0, 0.5;
  const Matrix hot = Categorical(p).sample(Stream(14), 500).tokens();
  EXPECT_TRUE(close(hot.rowwise().sum(), Vector::Ones(500), 0));
  EXPECT_EQ(hot.col(1).sum(), 0);
}

}  // namespace
}  // namespace esscher
