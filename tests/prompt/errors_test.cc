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
    const auto exact = query_errors(Engine::exact, all, lengths, mu, attention, z, 1, Stream(0));
    for (Engine engine : {Engine::sampled, Engine::direct}) {
      std::vector<std::array<Moments, 3>> got(2 * all.size());
      for (std::uint64_t b = 0; b < 2500; ++b) {
        const auto e = query_errors(engine, all, lengths, mu, attention, z, 3, Stream(8).split(b));
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

// Over many small studies the covariance that one reports is the covariance that there is.
TEST(QueryErrors, LengthsCoVaryAsReported) {
  const Problem p = gaussian_problem(2, 0.5);
  const Vector z = Vector{{0.7, -0.6}};
  const std::vector<std::int64_t> lengths = {5, 8, 40};
  for (Engine engine : {Engine::sampled, Engine::direct}) {
    CoMoments values;
    std::array<Moments, 3> reported;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const auto e = query_errors(engine, {Metric::output}, lengths, p.mu, p.attention, z, 5,
                                  Stream(4).split(i))[0];
      values.add(Vector{{e[0].value, e[1].value, e[2].value}});
      ASSERT_EQ(e[2].cov.size(), 3u);
      EXPECT_TRUE(close(e[2].cov[2], e[2].std_error * e[2].std_error, 1e-12));
      reported[0].add(e[1].cov[0]);
      reported[1].add(e[2].cov[0]);
      reported[2].add(e[2].cov[1]);
    }
    const Matrix C = 3000 * values.covariance_of_mean();
    EXPECT_GT(C(0, 1), 0.4 * C(1, 1));
    EXPECT_TRUE(close(reported[0].mean(), C(0, 1), 0.2));
    EXPECT_TRUE(close(reported[2].mean(), C(1, 2), 0.3));
    EXPECT_TRUE(close(reported[1].mean(), C(0, 2), 0.3));
  }
}

}  // namespace
}  // namespace esscher
