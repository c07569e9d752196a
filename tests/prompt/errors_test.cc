#include "esscher/prompt/errors.h"

#include <gtest/gtest.h>

#include <array>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "tests/concentration/problems.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using testing::gaussian_problem;
using testing::random_matrix;

// Bias, weights and value of a sampling engine at one query are unbiased for any number of prompts,
// so the average of many estimates from three prompts each must be the exact value.
TEST(QueryErrors, BiasOfFewPromptsIsUnbiased) {
  const Matrix K = random_matrix(Stream(31, 11), 2, 3), Q = random_matrix(Stream(31, 12), 2, 3);
  const Attention attention = Attention::from_kqv(K, Q, random_matrix(Stream(31, 13), 2, 3), 0.3);
  const Vector z = Vector{{0.9, -0.7, 0.5}};
  const AnyMeasure one = Gaussian(Vector{{0.1, 0.4, -0.2}}, 0.6 * Matrix::Identity(3, 3));
  const AnyMeasure two = Mixture(
      Vector{{0.4, 0.6}}, {one, Gaussian(Vector{{1.0, 0.0, 0.3}}, 0.2 * Matrix::Identity(3, 3))});
  const std::vector<Metric> all = {Metric::output, Metric::grad_v, Metric::grad_u, Metric::grad_k,
                                   Metric::grad_q};
  const std::vector<std::int64_t> lengths = {2, 9};
  for (const AnyMeasure& mu : {one, two}) {
    const auto exact = query_errors(all, mu, attention, z, lengths, {.engine = Engine::exact});
    for (Engine engine : {Engine::sampled, Engine::direct}) {
      std::vector<std::array<Moments, 3>> got(2 * all.size());
      for (std::uint64_t b = 0; b < 2500; ++b) {
        const auto e =
            query_errors(all, mu, attention, z, lengths,
                         {.engine = engine, .replicates = 3, .stream = Stream(8).split(b)});
        for (std::size_t i = 0; i < got.size(); ++i) {
          const QueryError& x = e[i / 2][i % 2];
          got[i][0].add(x.value);
          got[i][1].add(x.bias2);
          got[i][2].add(x.weights2);
        }
      }
      for (std::size_t i = 0; i < got.size(); ++i) {
        const QueryError& want = exact[i / 2][i % 2];
        EXPECT_TRUE(agrees(got[i][0].estimate(engine), want.value)) << mu.name() << i;
        EXPECT_TRUE(agrees(got[i][1].estimate(engine), want.bias2)) << mu.name() << i;
        EXPECT_TRUE(agrees(got[i][2].estimate(engine), want.weights2)) << mu.name() << i;
      }
    }
  }
}

// Over many small studies the covariance that one reports is the covariance that there is: the
// reported one less the product of the deviations averages to zero.
TEST(QueryErrors, LengthsCoVaryAsReported) {
  const Problem p = gaussian_problem(2, 0.5);
  const Vector z = Vector{{0.7, -0.6}};
  const std::vector<std::int64_t> lengths = {5, 8, 40};
  constexpr Index kStudies = 3000;
  for (Engine engine : {Engine::sampled, Engine::direct}) {
    Matrix values(kStudies, 3);
    std::array<Matrix, 3> reported;
    reported.fill(Matrix::Zero(kStudies, 3));
    for (Index i = 0; i < kStudies; ++i) {
      const auto e = query_errors({Metric::output}, p.mu, p.attention, z, lengths,
                                  {.engine = engine,
                                   .replicates = 5,
                                   .stream = Stream(4).split(static_cast<std::uint64_t>(i))})[0];
      for (std::size_t l = 0; l < 3; ++l) {
        ASSERT_EQ(e[l].cov.size(), l + 1);
        EXPECT_TRUE(close(e[l].cov[l], e[l].std_error * e[l].std_error, 1e-12));
        values(i, static_cast<Index>(l)) = e[l].value;
        for (std::size_t k = 0; k <= l; ++k) reported[l](i, static_cast<Index>(k)) = e[l].cov[k];
      }
    }
    const Matrix centred = values.rowwise() - values.colwise().mean();
    const double unbiased = kStudies / (kStudies - 1.0);
    EXPECT_GT(reported[1].col(0).mean(), 0.4 * reported[1].col(1).mean()) << "prefixes share noise";
    for (Index l = 0; l < 3; ++l) {
      for (Index k = 0; k <= l; ++k) {
        Moments difference;
        for (Index i = 0; i < kStudies; ++i) {
          difference.add(reported[static_cast<std::size_t>(l)](i, k) -
                         unbiased * centred(i, k) * centred(i, l));
        }
        EXPECT_TRUE(agrees(difference.estimate(engine), 0)) << l << " " << k;
      }
    }
  }
}

}  // namespace
}  // namespace esscher
