#include <gtest/gtest.h>

#include <array>
#include <boost/math/distributions/binomial.hpp>
#include <cstdlib>

#include "esscher/concentration/study.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/mixture.h"
#include "tests/concentration/problems.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using testing::gaussian_problem;

// Two levels of randomness, small studies: the 95 % interval must cover the exact value. The night
// holds the measured coverage of 1000 studies to 93..97 %. The 200 of every check hold the coverage
// itself to that range, at the suite's budget of false alarms: the limits are where a binomial with
// p = 0.93 (0.97) falls below (above) with a chance of at most 1e-5. Above, 200 studies can show
// nothing at that budget: 0.97^200 = 0.002.
TEST(Study, IntervalsAreCalibrated) {
  const bool nightly = std::getenv("ESSCHER_NIGHTLY") != nullptr;
  const int repeats = nightly ? 1000 : 200;
  const Problem problem = gaussian_problem(2, 0.35);
  StudyOptions o{{8}, {Metric::output}, Engine::automatic, 80, 2, 0};
  const double truth = study(problem, o).rows[0].value;
  o.engine = Engine::direct;
  int covered = 0;
  for (int i = 0; i < repeats; ++i) {
    o.seed = static_cast<std::uint64_t>(1000 + i);
    covered += study(problem, o).rows[0].ci.contains(truth) ? 1 : 0;
  }
  RecordProperty("covered", covered);
  const auto limit = [&](double p, double level) {
    return quantile(boost::math::binomial(repeats, p), level);
  };
  const double lowest = nightly ? 0.93 * repeats : limit(0.93, 1e-5);
  const double highest = nightly ? 0.97 * repeats : limit(0.97, 1 - 1e-5);
  EXPECT_GE(covered, lowest);
  EXPECT_LE(covered, highest);
}

// Limits within which 200 studies must cover at a rate between 90 and 99 %, up to chances of 1e-5.
void expect_calibrated(int covered, int repeats) {
  const auto limit = [&](double p, double level) {
    return quantile(boost::math::binomial(repeats, p), level);
  };
  EXPECT_GE(covered, limit(0.90, 1e-5));
  EXPECT_LE(covered, limit(0.99, 1 - 1e-5));
}

// Prefixes of one prompt move together, so that many lengths close to each other say little more
// than few: an interval that counts them as independent covers the true slope too rarely.
TEST(Study, SlopeIntervalsOfGivenQueriesAreCalibrated) {
  Problem problem = gaussian_problem(2, 0.4);
  problem.nu.reset();
  problem.points = Matrix{{0.5, 0.2}, {-0.3, 0.9}, {1.1, -0.4}};
  StudyOptions o{{}, {Metric::output}, Engine::exact, 2, 12, 0};
  for (std::int64_t L = 20; L <= 700; L += L / 12) o.lengths.push_back(L);
  const double truth = study(problem, o).fits[0].power.slope;
  o.engine = Engine::sampled;
  const int repeats = 200;
  int covered = 0;
  for (int i = 0; i < repeats; ++i) {
    o.seed = static_cast<std::uint64_t>(500 + i);
    const StudyResult r = study(problem, o);
    covered += r.fits[0].power.ci.contains(truth) ? 1 : 0;
    ASSERT_GT(r.rows[0].std_error, 0);
  }
  RecordProperty("covered", covered);
  expect_calibrated(covered, repeats);
}

// Two equal components are one Gaussian, whose average over Gaussian queries is known: the error of
// a scrambled net must be small and honest.
TEST(Study, NetsOfQueriesAreAccurateAndHonest) {
  const Problem one = gaussian_problem(2, 0.5);
  Problem two = one;
  two.mu = Mixture(Vector{{0.5, 0.5}}, {one.mu, one.mu});
  StudyOptions o{{20, 10000}, {Metric::output, Metric::grad_u}, Engine::automatic, 32, 1, 0};
  const StudyResult truth = study(one, o);
  const int repeats = 60;
  std::array<int, 4> covered{};
  for (int i = 0; i < repeats; ++i) {
    o.seed = static_cast<std::uint64_t>(i);
    const StudyResult r = study(two, o);
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(r.rows[k].engine, Engine::quadrature);
      covered[k] += r.rows[k].ci.contains(truth.rows[k].value) ? 1 : 0;
    }
  }
  for (int c : covered) expect_calibrated(c, repeats);
  // Against as many draws from the same law, which the study cannot see to be Gaussian.
  o.queries = 512;
  const StudyResult net = study(two, o);
  EXPECT_NE(net.how.find("Sobol"), std::string::npos);
  // One token is seen by every query: the weights of the nodes leave no noise there.
  EXPECT_TRUE(
      close(study(two, {{1}, {Metric::output}, Engine::automatic, 32, 1, 0}).rows[0].ess, 1, 1e-9));
  Problem drawn = two;
  drawn.nu = Mixture(Vector{{0.5, 0.5}},
                     {one.mu, Affine(Vector{{1e-9, 0}}, Matrix::Identity(2, 2), one.mu)});
  const StudyResult plain = study(drawn, o);
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_TRUE(agrees({net.rows[k].value, net.rows[k].std_error, 512, Engine::exact},
                       truth.rows[k].value));
    EXPECT_LT(net.rows[k].std_error, 0.4 * plain.rows[k].std_error);
  }
}

}  // namespace
}  // namespace esscher
