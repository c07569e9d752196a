// Coverage that a test counts, told to scripts/calibrate: it makes a row of docs/calibration.md from
// each record in the JSON that gtest writes.
#pragma once

#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace esscher::testing {

// How many of `seeds` intervals were flagged, and how many of the others held the truth.
struct Coverage {
  int seeds = 0, flagged = 0, held = 0;

  [[nodiscard]] int judged() const { return seeds - flagged; }
};

// The rule of scripts/calibrate, which counts more seeds: a coverage of 93 to 97 % is compatible with
// the count.
inline void expect_calibrated(const Coverage& c, std::string_view what) {
  using boost::math::binomial, boost::math::quantile;
  ASSERT_GE(c.judged(), 100) << what;
  EXPECT_GE(c.held, quantile(binomial(c.judged(), 0.93), 1e-3)) << what;
  EXPECT_LE(c.held, quantile(binomial(c.judged(), 0.97), 1 - 1e-3)) << what;
}

// Numbers of `count` seeds. ESSCHER_COVERAGE=k, which scripts/calibrate sets to count again, gives k
// times as many others.
inline std::vector<int> coverage_seeds(int count) {
  const char* more = std::getenv("ESSCHER_COVERAGE");  // NOLINT(concurrency-mt-unsafe)
  const int times = more == nullptr ? 0 : std::atoi(more);
  std::vector<int> seeds(static_cast<std::size_t>(times > 0 ? times * count : count));
  std::iota(seeds.begin(), seeds.end(), times > 0 ? count : 0);  // clang 14 has no std::views
  return seeds;
}

// The n-th record of the test that runs. Words hold no "|".
inline void record_coverage(int n, const std::string& interval, const std::string& of,
                            const std::string& sampled, const Coverage& c) {
  std::string text;
  for (const std::string& word : {interval, of, sampled}) text += word + "|";
  ::testing::Test::RecordProperty("coverage" + std::to_string(n),
                                  text + std::to_string(c.seeds) + "|" + std::to_string(c.flagged) +
                                      "|" + std::to_string(c.held));
}

}  // namespace esscher::testing
