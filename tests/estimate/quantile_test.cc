#include "esscher/estimate/quantile.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>
#include <cmath>

#include "esscher/random/stream.h"
#include "tests/testing.h"

namespace esscher {
namespace {

TEST(Quantile, IsTheNearestRank) {
  const std::vector<double> x = {30, 10, 50, 20, 40};
  EXPECT_EQ(quantile(x, 0), 10);
  EXPECT_EQ(quantile(x, 0.24), 20);  // rank 0.96
  EXPECT_EQ(quantile(x, 0.5), 30);
  EXPECT_EQ(quantile(x, 0.9), 50);  // rank 3.6
  EXPECT_EQ(quantile(x, 1), 50);
}

TEST(Quantile, LevelsOutsideAreTheEnds) {
  EXPECT_EQ(quantile({1, 2, 3}, -0.1), 1);
  EXPECT_EQ(quantile({1, 2, 3}, 1.5), 3);
}

TEST(Quantile, MedianOfAnEvenCountIsTheMiddle) {
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({4, 1, 3}), 3);
  EXPECT_EQ(median({}), 0);
}

// The interval of two order statistics covers the quantile of the law as often as a binomial count
// stays between their ranks.
TEST(Quantile, OrderStatisticsCoverAsBinomialCountsSay) {
  constexpr int kNumbers = 64, kRepeats = 4000;
  const double p = 0.9, half = 1.96 * std::sqrt(p * (1 - p) / kNumbers);
  int covered = 0;
  for (std::uint64_t r = 0; r < kRepeats; ++r) {
    std::vector<double> x(kNumbers);
    Stream(3).split(r).fill_uniform(0, x);
    covered += order_statistic(x, p - half) <= p && p <= order_statistic(x, p + half) ? 1 : 0;
  }
  const boost::math::binomial count(kNumbers, p);
  const double chance =
      cdf(count, std::floor(kNumbers * (p + half))) - cdf(count, std::floor(kNumbers * (p - half)));
  EXPECT_GT(chance, 0.95);
  const double std_error = std::sqrt(chance * (1 - chance) / kRepeats);
  EXPECT_TRUE(testing::agrees({double(covered) / kRepeats, std_error, kRepeats}, chance));
}

// Skewed draws; whole ranks would make the interval of 16 draws too short.
TEST(Quantile, MediansAreAsCertainAsTheySay) {
  constexpr int kRepeats = 4000;
  using boost::math::binomial;
  for (const int n : {16, 64, 101}) {
    int covered = 0;
    for (std::uint64_t r = 0; r < kRepeats; ++r) {
      std::vector<double> x(static_cast<std::size_t>(n));
      Stream(4, static_cast<std::uint64_t>(n)).split(r).fill_uniform(0, x);
      for (double& one : x) one = -std::log1p(-one);
      const Estimate found = median_estimate(x, Engine::direct);
      covered += std::abs(found.value - std::log(2.0)) <= 1.96 * found.std_error ? 1 : 0;
    }
    EXPECT_GE(covered, quantile(binomial(kRepeats, 0.93), 1e-3)) << n;
    EXPECT_LE(covered, quantile(binomial(kRepeats, 0.97), 1 - 1e-3)) << n;
  }
  EXPECT_EQ(median_estimate({}, Engine::direct).value, 0);
  EXPECT_EQ(median_estimate({3}, Engine::direct).std_error, 0);
}

}  // namespace
}  // namespace esscher
