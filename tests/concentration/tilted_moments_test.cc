#include "esscher/concentration/tilted_moments.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/concentration/bound.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using testing::random_matrix;
using testing::random_psd;

Problem standard(Index d, double u) {
  const Matrix I = Matrix::Identity(d, d);
  return {.mu = Gaussian(I), .attention = Attention::from_uv(u * I, I), .nu = Gaussian(I)};
}

// |z|^2 is chi-square: E|z|^4 = d(d+2), E|z|^8 = d(d+2)(d+4)(d+6). With U = u I tokens are
// N(0, (1+u^2) I) on average over queries.
TEST(TiltedMoments, OfStandardNormalsInThePlane) {
  const TiltedMoments m = tilted_moments(standard(2, 0.2), 2, 0);
  EXPECT_EQ(m.how, "exact");
  EXPECT_TRUE(close(m.value(0, 1), 8, 1e-13));
  EXPECT_TRUE(close(m.value(0, 2), 384, 1e-13));
  EXPECT_TRUE(close(m.value(1, 0), 8 * std::pow(1.04, 2), 1e-13));
  EXPECT_TRUE(close(m.value(2, 0), 384 * std::pow(1.04, 4), 1e-13));
  EXPECT_TRUE(close(m.output4, 8 * std::pow(0.04, 2), 1e-13));
  EXPECT_EQ(m.std_error.norm(), 0);
}

// Two dimensions of integration by the trapezoidal rule, which is exact here to all digits.
TEST(TiltedMoments, OfOneDimensionByQuadrature) {
  const double m = 0.3, g = 0.7, u = -0.8, mean = 0.4, s = 1.2;
  const Problem p{.mu = Gaussian(Vector{{m}}, Matrix{{g}}),
                  .attention = Attention::from_uv(Matrix{{u}}, Matrix{{1.5}}),
                  .nu = Gaussian(Vector{{mean}}, Matrix{{s}})};
  Matrix want = Matrix::Zero(3, 3);
  double output4 = 0;
  const double h = 0.1;
  for (double x = -12; x <= 12; x += h) {
    for (double y = -12; y <= 12; y += h) {
      const double weight = h * h * std::exp(-(x * x + y * y) / 2) / (2 * 3.14159265358979323846);
      const double z = mean + std::sqrt(s) * x;
      const double token = m + g * u * z + std::sqrt(g) * y;
      for (Index i = 0; i < 3; ++i) {
        for (Index j = 0; j < 3; ++j)
          want(i, j) += weight * std::pow(token, 4 * i) * std::pow(z, 4 * j);
      }
      output4 += weight * std::pow(1.5 * (m + g * u * z), 4);
    }
  }
  const TiltedMoments got = tilted_moments(p, 2, 0);
  for (Index i = 0; i < 3; ++i) {
    for (Index j = 0; j < 3; ++j) EXPECT_TRUE(close(got.value(i, j), want(i, j), 1e-11)) << i << j;
  }
  EXPECT_TRUE(close(got.output4, output4, 1e-11));
}

// The same law without a closed form, in three dimensions: a mixture of a Gaussian with itself.
TEST(TiltedMoments, EstimatesCarryTheirErrors) {
  Problem p{.mu = Gaussian(Vector{{0.2, -0.1, 0.3}}, 0.5 * random_psd(Stream(3, 1), 3)),
            .attention = Attention::from_uv(0.2 * random_matrix(Stream(3, 2), 3, 3),
                                            random_matrix(Stream(3, 3), 2, 3)),
            .nu = Gaussian(random_psd(Stream(3, 4), 3))};
  const TiltedMoments exact = tilted_moments(p, 2, 0);
  p.mu = Mixture(Vector{{0.5, 0.5}}, {p.mu, p.mu});
  const TiltedMoments sampled = tilted_moments(p, 2048, 5);
  for (Index i = 0; i < 2; ++i) {
    for (Index j = 0; j < 2; ++j) {
      if (i + j == 0) continue;
      EXPECT_TRUE(agrees({sampled.value(i, j), sampled.std_error(i, j)}, exact.value(i, j)));
    }
  }
  EXPECT_TRUE(agrees({sampled.output4, sampled.output4_error}, exact.output4));
}

TEST(TiltedMoments, OfGivenQueriesAreExactForGaussianTokens) {
  Problem p = standard(2, 1.0);
  p.nu.reset();
  p.points = Matrix{{3.0, 0.0}};
  const TiltedMoments m = tilted_moments(p, 2, 0);
  // |x|^2 is noncentral chi-square with two degrees of freedom and offset 9: its mean is 11, its
  // variance 2 (2 + 18).
  EXPECT_TRUE(close(m.value(1, 0), 11 * 11 + 40, 1e-13));
  EXPECT_TRUE(close(m.value(1, 1), 81 * 161, 1e-13));
  EXPECT_EQ(m.std_error.norm(), 0);
}

// Gaussian queries reach beyond the domain of Laplace tokens, however rarely.
TEST(TiltedMoments, FinitenessCanFail) {
  Problem p = standard(1, 1.0);
  p.mu = Laplace(1, 0.05);
  const TiltedMoments m = tilted_moments(p, 64, 0);
  EXPECT_FALSE(m.finite);
  EXPECT_TRUE(std::isinf(m.value(1, 0)));
  const BoundReport report = check_bound(Proposition::prop34, p, StudyResult{}, 1);
  int failing = 0;
  for (const Hypothesis& h : report.hypotheses) {
    if (h.name.find("is finite") != std::string::npos) failing += h.holds ? 0 : 1;
  }
  EXPECT_EQ(failing, 9);
  p.nu = Rademacher(1);
  EXPECT_TRUE(tilted_moments(p, 64, 0).finite);
}

}  // namespace
}  // namespace esscher
