// Constants of dependent tokens: the value of the theory, independent tokens as a special case, and
// simulation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/concentration/constant.h"
#include "esscher/concentration/length.h"
#include "esscher/concentration/study.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/stationary.h"
#include "esscher/prompt/errors.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using ::testing::HasSubstr;
using testing::message_of;

const Matrix kG{{1.0, 0.3}, {0.3, 0.5}};
const Vector kQuery{{0.7, -0.4}};

Attention attention() {
  return Attention::from_uv(Matrix::Identity(2, 2), Matrix{{1.0, 0.5}, {0.0, 2.0}});
}

Stationary chain(double rho) {
  return Stationary::autoregressive(Gaussian(kG), {rho * Matrix::Identity(2, 2)});
}

TEST(DependentConstant, TheCheckValueOfTheTheory) {
  EXPECT_TRUE(
      close(asymptotic_constant(Metric::output, chain(0.8), attention(), kQuery), 40.11, 1e-4));
  EXPECT_TRUE(
      close(independent_constant(Metric::output, chain(0.8), attention(), kQuery), 5.632, 1e-4));
}

// Lag 0 of the closed form is the constant of independent tokens, which is computed by cumulants.
TEST(DependentConstant, WithoutCorrelationItIsThatOfIndependentTokens) {
  const Attention head =
      Attention::from_kqv(Matrix{{1.0, 0.2}, {0.1, 0.7}}, Matrix{{0.8, 0.0}, {0.3, 1.1}},
                          Matrix{{1.0, 0.5}, {0.0, 2.0}}, 0.9);
  const AnyMeasure none = Stationary::autocorrelated(Gaussian(kG), Vector::Zero(1));
  for (const Metric metric :
       {Metric::output, Metric::grad_v, Metric::grad_u, Metric::grad_k, Metric::grad_q}) {
    EXPECT_TRUE(close(asymptotic_constant(metric, none, head, kQuery),
                      asymptotic_constant(metric, Gaussian(kG), head, kQuery), 1e-12))
        << name(metric);
  }
}

// An affine image of a sequence is a sequence with other matrices.
TEST(DependentConstant, AffineImages) {
  const Matrix B{{0.5, 0.2}, {0.0, 0.7}};
  const AnyMeasure image = Affine(Vector::Ones(2), B, chain(0.5));
  const Stationary same = Stationary::autoregressive(
      Gaussian(Vector::Ones(2), B * kG * B.transpose()), {0.5 * Matrix::Identity(2, 2)});
  EXPECT_TRUE(close(asymptotic_constant(Metric::grad_u, image, attention(), kQuery),
                    asymptotic_constant(Metric::grad_u, same, attention(), kQuery), 1e-12));
}

// Simulated at a gentle tilt, where L = 400 is close to its limit: the bias of order 1/L^2 is below
// the noise. Independent tokens would give constants 2 to 5 times smaller.
TEST(DependentConstant, AgreesWithSimulation) {
  const Vector z = 0.5 * kQuery;
  const Stationary sequences[] = {
      chain(0.6), Stationary::autocorrelated(Gaussian(kG), Vector{{0.6, 0.2}}),
      Stationary::autoregressive(Gaussian(kG), {Matrix{{0.5, 0.3}, {-0.1, 0.6}}})};
  for (const Stationary& sequence : sequences) {
    for (const Metric metric : {Metric::output, Metric::grad_u}) {
      const Estimate error =
          mean_square_error(metric, sequence, attention(), z, Length(400),
                            {.engine = Engine::direct, .replicates = 1500, .stream = Stream(77)});
      const double want = asymptotic_constant(metric, sequence, attention(), z);
      EXPECT_TRUE(agrees({400 * error.value, 400 * error.std_error, 1500, Engine::direct}, want))
          << name(metric);
      EXPECT_LT(6 * 400 * error.std_error, 0.4 * want);
      EXPECT_GT(want, 1.5 * independent_constant(metric, sequence, attention(), z));
    }
  }
}

TEST(DependentStudy, ReportsKappaAndRefusesOtherEngines) {
  const Problem problem{.mu = chain(0.6), .attention = attention(), .points = kQuery.transpose()};
  const StudyOptions options{
      .lengths = {50, 100, 200}, .metrics = {Metric::output}, .replicates = 50};
  const StudyResult result = study(problem, options);
  EXPECT_EQ(result.rows.front().engine, Engine::direct);
  ASSERT_TRUE(result.regime.kappa);
  EXPECT_TRUE(close(*result.regime.kappa,
                    asymptotic_constant(Metric::output, problem.mu, attention(), kQuery) /
                        independent_constant(Metric::output, problem.mu, attention(), kQuery),
                    1e-12));
  EXPECT_THAT(result.regime.text, HasSubstr("simulated"));
  for (const Engine engine : {Engine::exact, Engine::sampled}) {
    StudyOptions other = options;
    other.engine = engine;
    EXPECT_THAT(message_of<CapabilityError>([&] { (void)study(problem, other); }),
                HasSubstr("depend on each other"));
  }
}

TEST(DependentLength, CorrelatedTokensNeedLongerPrompts) {
  const LengthOptions options{.eps = 0.05, .replicates = 400, .seed = 3};
  const Vector z = 0.5 * kQuery;
  const LengthAnswer answer = shortest_length(
      {.mu = chain(0.6), .attention = attention(), .points = z.transpose()}, options);
  EXPECT_EQ(answer.status, LengthStatus::estimated);
  ASSERT_TRUE(answer.length);
  const double alone = independent_constant(Metric::output, chain(0.6), attention(), z) / 0.05;
  EXPECT_GT(static_cast<double>(answer.bracket_lo), 1.5 * alone);
  EXPECT_EQ(answer.clt,
            std::ceil(asymptotic_constant(Metric::output, chain(0.6), attention(), z) / 0.05));
}

}  // namespace
}  // namespace esscher
