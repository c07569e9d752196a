#include "esscher/concentration/output_moments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/concentration/queries.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

Problem problem() {
  const Matrix G{{0.6, 0.2}, {0.2, 0.5}}, U{{0.7, -0.4}, {0.3, 0.9}};
  const Matrix V{{1.0, 0.5}, {-0.3, 2.0}, {0.4, 0.1}};
  return {.mu = Gaussian(Vector{{0.3, -0.2}}, G), .attention = Attention::from_uv(U, V)};
}

// Token by token, without kernels.
TEST(OutputMoments, ArePlainSelfAttention) {
  const Problem p = problem();
  const MomentOptions options{.lengths = {17}, .replicates = 2, .seed = 5};
  const std::vector<MomentPoint> points = compute_here(moment_cells(p, options));
  const Stream prompts = Stream(5).split(kPromptStream).split(0);
  const Matrix G{{0.6, 0.2}, {0.2, 0.5}}, B = p.attention.V() * G * p.attention.U();
  const Vector m0{{0.3, -0.2}};
  for (std::uint64_t r = 0; r < 2; ++r) {
    const Matrix z = p.mu.sample(prompts.split(r), 17).tokens();
    Matrix Y(17, 3);
    for (Index i = 0; i < 17; ++i) {
      Vector s = z * (p.attention.U() * z.row(i).transpose());
      s = s.array().exp();
      Y.row(i) = (p.attention.V() * (z.transpose() * s) / s.sum()).transpose();
    }
    const Vector m = Y.colwise().mean().transpose();
    const Matrix S = Y.transpose() * Y / 17.0 - m * m.transpose();
    EXPECT_NEAR(points[r].mean, (m - p.attention.V() * m0 - B * m0).norm(), 1e-12);
    EXPECT_NEAR(points[r].covariance, (S - B * G * B.transpose()).norm(), 1e-12);
  }
}

// Without scores every output is V times the mean of the prompt, so that E|m_n| is that of a normal
// variable and the covariance is 0 as in the limit.
TEST(OutputMoments, WithoutScoresAreThoseOfTheMean) {
  const Problem p{.mu = Gaussian(Matrix{{0.5}}),
                  .attention = Attention::from_uv(Matrix::Zero(1, 1), Matrix::Identity(1, 1))};
  const MomentOptions options{.lengths = {10, 40}, .replicates = 400, .seed = 1};
  const MomentResult found = output_moments(p, options);
  EXPECT_EQ(found.horizon, 0);
  for (const MomentRow& row : found.rows) {
    if (row.moment == Moment::covariance) {
      EXPECT_LT(row.value, 1e-15);
      continue;
    }
    const Estimate value{row.value, row.std_error, 400, Engine::direct};
    EXPECT_TRUE(testing::agrees(value, std::sqrt(2 * 0.5 / (M_PI * static_cast<double>(row.L)))));
  }
}

TEST(OutputMoments, TendToTheLimitAtTheRateOfTheSource) {
  const MomentOptions options{.lengths = {250, 500, 1000, 2000}, .replicates = 48, .seed = 3};
  Problem p = problem();
  p.attention = Attention::from_uv(0.3 * p.attention.U(), p.attention.V());
  const MomentResult found = output_moments(p, options);
  ASSERT_EQ(found.fits.size(), 2U);
  for (const MomentFit& fit : found.fits) {
    const Estimate slope{fit.slope, fit.std_error, 48, Engine::direct};
    EXPECT_TRUE(testing::agrees(slope, -0.5)) << name(fit.moment);
    EXPECT_LT(fit.std_error, 0.12);
  }
  // |G^{1/2} U G^{1/2}| for a symmetric U is the largest |eigenvalue| of G U.
  p.mu = Gaussian(Vector{{0.5, 2.0}}.asDiagonal().toDenseMatrix());
  p.attention =
      Attention::from_uv(Vector{{3.0, -1.0}}.asDiagonal().toDenseMatrix(), p.attention.V());
  EXPECT_NEAR(output_moments(p, {.lengths = {5}, .replicates = 2}).horizon, 2.0, 1e-12);
}

TEST(OutputMoments, Refusals) {
  const Problem p = problem();
  const Problem other{.mu = Rademacher(2), .attention = p.attention};
  EXPECT_THAT(message_of<CapabilityError>([&] { (void)moment_cells(other, {.lengths = {5}}); }),
              HasSubstr("rademacher"));
  EXPECT_THAT(message_of<ArgumentError>([&] {
                (void)moment_cells(p, {.lengths = {5, 5}});
              }),
              HasSubstr("lengths is 5"));
  EXPECT_THAT(
      message_of<ArgumentError>([&] { (void)moment_cells(p, {.lengths = {5}, .replicates = 1}); }),
      HasSubstr("replicates is 1"));
}

}  // namespace
}  // namespace esscher
