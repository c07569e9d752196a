#include "esscher/estimate/block_interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/random/stream.h"
#include "tests/coverage.h"
#include "tests/testing.h"

namespace esscher {
namespace {

// exp(sigma g - sigma^2/2) with g Gaussian of autocorrelation rho^k: its mean is 1.
std::vector<double> lognormal_series(Stream stream, int n, double rho, double sigma) {
  std::vector<double> x;
  double g = stream.normal(0);
  for (int i = 0; i < n; ++i) {
    x.push_back(std::exp(sigma * g - 0.5 * sigma * sigma));
    g = rho * g + std::sqrt(1 - rho * rho) * stream.normal(static_cast<std::uint64_t>(i) + 1);
  }
  return x;
}

using testing::Coverage;

Coverage coverage(int n, double rho, double sigma, int seeds, std::uint64_t first) {
  Coverage out;
  for (const int s : testing::coverage_seeds(seeds)) {
    const Stream stream = Stream(first).split(static_cast<std::uint64_t>(s));
    const BlockInterval b = block_interval(lognormal_series(stream, n, rho, sigma), 16);
    ++out.seeds;
    out.flagged += b.heavy ? 1 : 0;
    out.held += !b.heavy && b.low <= 1 && 1 <= b.high ? 1 : 0;
  }
  return out;
}

TEST(BlockInterval, CoversAsOftenAsItSays) {
  struct Case {
    int n;
    double rho, sigma;
  };
  std::uint64_t first = 500;
  int n_record = 0;
  for (const auto& [n, rho, sigma] : {Case{256, 0, 0.5}, Case{1024, 0, 0.5}, Case{512, 0.3, 1},
                                      Case{1024, 0.9, 0.5}, Case{1024, 0.95, 0.5}}) {
    const Coverage c = coverage(n, rho, sigma, 1000, first++);
    testing::record_coverage(n_record++, "KL over blocks of text",
                             "lognormal, rho " + brief(rho) + ", sigma " + brief(sigma),
                             std::to_string(n) + " positions", c);
    ASSERT_GT(c.judged(), 500);
    testing::expect_calibrated(c, std::to_string(n) + " " + brief(rho) + " " + brief(sigma));
  }
}

TEST(BlockInterval, ShortTextsAndRareGiantsAreFlagged) {
  EXPECT_EQ(coverage(255, 0, 0.5, 20, 600).flagged, 20);
  EXPECT_GT(coverage(4096, 0, 2, 50, 601).flagged, 45);
}

TEST(BlockInterval, HoldsTheMeanOfAllNumbers) {
  const std::vector<double> x = lognormal_series(Stream(7), 301, 0.3, 1);  // blocks of 16 and 17
  double mean = 0;
  for (const double value : x) mean += value / 301;
  const BlockInterval b = block_interval(x, 16);
  EXPECT_TRUE(testing::close(b.mean, mean, 1e-14));
  EXPECT_LT(b.low, mean);
  EXPECT_GT(b.high, mean);
}

TEST(BlockInterval, HasNoWidthForAConstantAndNoEndsFromOneBlock) {
  const BlockInterval flat = block_interval(std::vector<double>(64, 0.25), 16);
  EXPECT_EQ(flat.low, 0.25);
  EXPECT_EQ(flat.high, 0.25);
  const BlockInterval one = block_interval(std::vector<double>(31, 0.25), 16);
  EXPECT_EQ(one.mean, 0.25);
  EXPECT_TRUE(std::isnan(one.low) && std::isnan(one.high) && one.heavy);
}

TEST(BlockInterval, NamesWhatItCannotTake) {
  EXPECT_THROW((void)block_interval({}, 16), ArgumentError);
  EXPECT_THROW((void)block_interval(std::vector<double>{1.0}, 0), ArgumentError);
}

}  // namespace
}  // namespace esscher
