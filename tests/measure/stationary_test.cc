// Stationary sequences: autocovariances against samples and recursions, refusals, prefixes.
#include "esscher/measure/stationary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/estimate/autocorrelation.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/mixture.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using ::testing::HasSubstr;
using testing::message_of;

const Matrix kG{{1.0, 0.3}, {0.3, 0.5}};
const Vector kMean{{0.4, -1.0}};

AnyMeasure gaussian() { return Gaussian(kMean, kG); }

Stationary order_two() {
  return Stationary::autoregressive(
      gaussian(), {Matrix{{0.4, 0.1}, {-0.2, 0.3}}, Matrix{{0.2, 0.0}, {0.1, -0.3}}});
}

std::vector<Stationary> sequences() {
  return {Stationary::autocorrelated(gaussian(), Vector{{0.6, 0.2}}),
          Stationary::autocorrelated(gaussian(), Vector{{0.5}}),  // on the edge of a process
          Stationary::autoregressive(gaussian(), {0.8 * Matrix::Identity(2, 2)}),
          Stationary::autoregressive(gaussian(), {Matrix{{0.5, 0.3}, {-0.1, 0.6}}}),
          Stationary::autoregressive(gaussian(),
                                     {0.5 * Matrix::Identity(2, 2), 0.3 * Matrix::Identity(2, 2)}),
          order_two()};
}

// Independent sequences; each entry of E z_s z_t' is compared at early and at later tokens.
TEST(Stationary, SamplesHaveTheAutocovariances) {
  constexpr Index kSequences = 4000, kLength = 9;
  std::uint64_t seed = 40;
  for (const Stationary& sequence : sequences()) {
    const Stream stream(++seed);
    std::vector<Matrix> z;
    for (Index i = 0; i < kSequences; ++i) {
      z.push_back(
          sequence.sample(stream.split(static_cast<std::uint64_t>(i)), kLength).tokens().rowwise() -
          kMean.transpose());
    }
    for (const auto& [s, t] : {std::pair<Index, Index>{0, 0}, {0, 1}, {1, 0}, {6, 8}, {7, 7}}) {
      const auto lag = static_cast<std::size_t>(std::abs(t - s));
      const std::vector<Matrix>& lags = sequence.autocovariances();
      Matrix want = lag < lags.size() ? lags[lag] : Matrix(Matrix::Zero(2, 2));
      if (t < s) want.transposeInPlace();
      for (Index i = 0; i < 2; ++i) {
        for (Index j = 0; j < 2; ++j) {
          Vector x(kSequences);
          for (Index n = 0; n < kSequences; ++n) {
            const Matrix& one = z[static_cast<std::size_t>(n)];
            x(n) = one(s, i) * one(t, j);
          }
          const double spread = std::sqrt((x.array() - x.mean()).square().mean() / kSequences);
          EXPECT_TRUE(agrees({x.mean(), spread, kSequences, Engine::direct}, want(i, j)))
              << seed << ": tokens " << s << "," << t << " entry " << i << "," << j;
        }
      }
    }
  }
}

TEST(Stationary, SamplesArePrefixes) {
  for (const Stationary& sequence : sequences()) {
    const Matrix full = sequence.sample(Stream(3), 50).tokens();
    for (const Index n : {1, 2, 7, 49}) {
      EXPECT_TRUE(close(sequence.sample(Stream(3), n).tokens(), full.topRows(n), 0));
    }
  }
}

// Yule and Walker: E z_{t+k} z_t' = sum_i A_i E z_{t+k-i} z_t' for k >= 1, and the noise is PSD.
TEST(Stationary, AutoregressionsSolveTheirEquations) {
  const Matrix A1{{0.4, 0.1}, {-0.2, 0.3}}, A2{{0.2, 0.0}, {0.1, -0.3}};
  const std::vector<Matrix> lags = order_two().autocovariances();
  EXPECT_TRUE(close(lags[0], kG, 1e-14));
  EXPECT_TRUE(close(lags[1].transpose(), A1 * kG + A2 * lags[1], 1e-12));
  for (std::size_t k = 2; k < 8; ++k) {
    EXPECT_TRUE(close(lags[k].transpose(),
                      A1 * lags[k - 1].transpose() + A2 * lags[k - 2].transpose(), 1e-12));
  }
  const auto geometric =
      Stationary::autoregressive(gaussian(), {0.8 * Matrix::Identity(2, 2)}).autocovariances();
  EXPECT_TRUE(close(geometric[5], std::pow(0.8, 5) * kG, 1e-13));
  EXPECT_GT(geometric.size(), 150U);
}

TEST(Stationary, RefusesWhatIsNoProcess) {
  const Matrix I = Matrix::Identity(2, 2);
  EXPECT_THAT(message_of<ArgumentError>(
                  [&] { (void)Stationary::autocorrelated(gaussian(), Vector{{0.6}}); }),
              HasSubstr("spectral density -0."));
  EXPECT_THAT(
      message_of<ArgumentError>([&] { (void)Stationary::autoregressive(gaussian(), {1.01 * I}); }),
      HasSubstr("do not fade"));
  EXPECT_THAT(message_of<ArgumentError>([&] {
                (void)Stationary::autoregressive(gaussian(), {Matrix{{0.0, 5.0}, {0.0, 0.0}}});
              }),
              HasSubstr("no process with these coefficients"));
  EXPECT_THAT(message_of<ArgumentError>(
                  [&] { (void)Stationary::autocorrelated(Rademacher(2), Vector{{0.1}}); }),
              HasSubstr("of is rademacher, expected a Gaussian law"));
  EXPECT_THROW((void)Stationary::autoregressive(gaussian(), {Matrix::Identity(3, 3)}),
               DimensionError);
}

TEST(Stationary, DependenceIsSeenInsideComposedMeasures) {
  const Stationary sequence = Stationary::autocorrelated(gaussian(), Vector{{0.4}});
  const Matrix B{{1.0, 2.0}};
  const AnyMeasure image = Affine(Vector::Ones(1), B, sequence);
  EXPECT_TRUE(is_dependent(image));
  EXPECT_TRUE(close(autocovariances(image)->at(1), 0.4 * B * kG * B.transpose(), 1e-14));
  const AnyMeasure mixture = Mixture(Vector::Ones(2), {sequence, gaussian()});
  EXPECT_TRUE(is_dependent(mixture));
  EXPECT_FALSE(autocovariances(mixture));
  EXPECT_FALSE(is_dependent(gaussian()));
}

// One long stretch of AR(1) with coefficient 0.6: kappa = (1 + 0.6)/(1 - 0.6) = 4.
TEST(Autocorrelation, FindsTheKappaOfAnAutoregression) {
  const Stationary sequence =
      Stationary::autoregressive(gaussian(), {0.6 * Matrix::Identity(2, 2)});
  const Matrix tokens = sequence.sample(Stream(8), 20000).tokens();
  const Autocorrelation found = autocorrelation(tokens);
  EXPECT_FALSE(found.is_cut);
  EXPECT_TRUE(agrees({found.kappa, found.std_error, 20000, Engine::direct}, 4));
  EXPECT_LT(found.std_error, 0.3);
  const Stationary fitted = Stationary::fit(tokens);
  EXPECT_TRUE(close(fitted.autocovariances()[1], 0.6 * kG, 0.1));
  EXPECT_TRUE(close(fitted.mean(), kMean, 0.1));
  EXPECT_EQ(autocorrelation(Matrix::Ones(20, 2)).kappa, 1);
  EXPECT_THROW((void)autocorrelation(Matrix::Ones(7, 2)), ArgumentError);
}

}  // namespace
}  // namespace esscher
