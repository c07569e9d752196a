// Suprema over balls against dense nets in one and two dimensions.
#include "esscher/concentration/sup_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/covariance_bound.h"
#include "esscher/measure/elliptical.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/sphere.h"
#include "esscher/measure/student.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using ::testing::HasSubstr;
using testing::message_of;

double error_at(const Problem& p, const Empirical& prompt, const Vector& z) {
  return (p.attention(prompt, z) - p.attention(p.mu, z)).norm();
}

// The largest error on a net of the ball in the plane or on the line.
double net_maximum(const Problem& p, const Empirical& prompt, double radius) {
  double best = 0;
  if (p.mu.dim() == 1) {
    for (int i = -4000; i <= 4000; ++i) {
      best = std::max(best, error_at(p, prompt, Vector::Constant(1, radius * i / 4000)));
    }
    return best;
  }
  for (int i = 1; i <= 40; ++i) {
    for (int j = 0; j < 200; ++j) {
      const double angle = 2 * M_PI * j / 200, r = radius * i / 40;
      best =
          std::max(best, error_at(p, prompt, Vector{{r * std::cos(angle), r * std::sin(angle)}}));
    }
  }
  return best;
}

void expect_supremum(const Problem& p, std::uint64_t seed) {
  const SupOptions options{.radius = 1.5, .lengths = {40}, .tolerance = 0.01};
  const Empirical prompt = p.mu.sample(Stream(seed), 40);
  const SupPoint point = sup_of_prompt(p, prompt.tokens(), options);
  const double net = net_maximum(p, prompt, options.radius);
  EXPECT_LE(net, point.upper) << p.mu.name();
  EXPECT_GE(point.lower, 0.99 * net) << p.mu.name();
  EXPECT_LE(point.lower, 1.003 * net) << p.mu.name();  // the net is that fine
  EXPECT_LE(point.upper, 1.0101 * point.lower) << p.mu.name();
}

TEST(SupError, AgreesWithADenseNet) {
  const Attention line = Attention::from_uv(Matrix::Constant(1, 1, 0.9), Matrix::Ones(1, 1));
  const Attention plane =
      Attention::from_uv(Matrix{{0.8, 0.2}, {-0.1, 0.6}}, Matrix{{1.0, 0.5}, {0.0, 2.0}});
  const ScaleLaw scales{Vector{{0.5, 1.5}}, Vector::Ones(2)};
  const Matrix one = Matrix::Ones(1, 1), two = Matrix::Identity(2, 2);
  std::uint64_t seed = 10;
  for (const AnyMeasure& mu :
       {AnyMeasure(Gaussian(one)), AnyMeasure(Uniform(1)), AnyMeasure(Rademacher(1)),
        AnyMeasure(Elliptical(one, scales)),
        AnyMeasure(
            Mixture(Vector::Ones(2), {Gaussian(0.1 * one), Gaussian(Vector::Ones(1), one)}))}) {
    expect_supremum({.mu = mu, .attention = line}, ++seed);
  }
  for (const AnyMeasure& mu : {AnyMeasure(Gaussian(two)), AnyMeasure(Ball(2, 1.5))}) {
    expect_supremum({.mu = mu, .attention = plane}, ++seed);
  }
}

// With few points the answer is still certified: the net lies below the upper end.
TEST(SupError, TheResolutionIsHonest) {
  const Problem p{
      .mu = Gaussian(Matrix::Identity(2, 2)),
      .attention = Attention::from_uv(0.7 * Matrix::Identity(2, 2), Matrix::Identity(2, 2))};
  const Empirical prompt = p.mu.sample(Stream(5), 60);
  const double net = net_maximum(p, prompt, 2);
  for (const std::int64_t points : {1, 10, 100}) {
    const SupPoint point =
        sup_of_prompt(p, prompt.tokens(), {.radius = 2, .tolerance = 1e-6, .max_points = points});
    EXPECT_GE(point.upper, net) << points;
    EXPECT_LE(point.lower, 1.003 * net) << points;
  }
}

// sup |V C_a| over tilts, scanned.
TEST(CovarianceBound, IsNotExceeded) {
  const Matrix G{{1.0, 0.3}, {0.3, 0.5}};
  const ScaleLaw scales{Vector{{0.5, 3.0}}, Vector::Ones(2)};
  for (const AnyMeasure& mu :
       {AnyMeasure(Gaussian(G)), AnyMeasure(Elliptical(G, scales)), AnyMeasure(Rademacher(2)),
        AnyMeasure(Uniform(2)), AnyMeasure(Sphere(2, 2)), AnyMeasure(Ball(2, 2)),
        AnyMeasure(Laplace(2, 0.3)),
        AnyMeasure(Mixture(Vector{{1.0, 3.0}}, {Gaussian(G), Gaussian(Vector{{3.0, 1.0}}, 2 * G)})),
        AnyMeasure(Empirical(testing::random_matrix(Stream(2), 9, 2)))}) {
    const double bound = covariance_bound(mu, 2).value();
    for (int i = 0; i <= 8; ++i) {
      for (int j = 0; j < 16; ++j) {
        const double r = 2.0 * i / 8, angle = M_PI * j / 8;
        const Vector a{{r * std::cos(angle), r * std::sin(angle)}};
        EXPECT_LE(max_eigenvalue(mu.tilted_cov(a)), bound * (1 + 1e-12)) << mu.name();
      }
    }
  }
  EXPECT_FALSE(covariance_bound(Student(5, G), 1));
  EXPECT_TRUE(std::isinf(*covariance_bound(Laplace(2, 1), 1.5)));
}

TEST(SupError, RowsAndRefusals) {
  const Problem p{
      .mu = Gaussian(Matrix::Identity(1, 1)),
      .attention = Attention::from_uv(0.5 * Matrix::Identity(1, 1), Matrix::Identity(1, 1))};
  const SupOptions options{.radius = 1, .lengths = {10, 1000}, .replicates = 40, .seed = 2};
  const std::vector<SupRow> rows = sup_rows(compute_here(sup_cells(p, options)), options);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_GT(rows[0].value, 4 * rows[1].value);
  EXPECT_GT(rows[1].std_error, 0);
  EXPECT_LE(rows[1].resolution, 0.021 * rows[1].value);
  EXPECT_LE(rows[1].ci.lo, rows[1].value);
  const Problem wide{
      .mu = Rademacher(4),
      .attention = Attention::from_uv(Matrix::Identity(4, 4), Matrix::Identity(4, 4))};
  EXPECT_THAT(message_of<CapabilityError>([&] { (void)sup_cells(wide, options); }),
              HasSubstr("U has rank 4"));
  const Problem heavy{.mu = Student(5, Matrix::Identity(1, 1)), .attention = p.attention};
  EXPECT_THAT(message_of<CapabilityError>([&] { (void)sup_cells(heavy, options); }),
              HasSubstr("for student tokens"));
  SupOptions bad = options;
  bad.radius = -1;
  EXPECT_THAT(message_of<ArgumentError>([&] { (void)sup_cells(p, bad); }),
              HasSubstr("radius is -1"));
}

}  // namespace
}  // namespace esscher
