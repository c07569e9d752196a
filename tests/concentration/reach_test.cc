// Where a study reaches a tolerance, against the search for the shortest length.
#include <gtest/gtest.h>

#include "esscher/concentration/length.h"
#include "esscher/concentration/study.h"
#include "esscher/measure/coordinates.h"
#include "tests/concentration/problems.h"
#include "tests/coverage.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::gaussian_problem;

TEST(Reach, IsTheShortestLengthWhereNothingIsSampled) {
  const Problem p = gaussian_problem(2, 0.4);
  for (const double fraction : {0.3, 0.01}) {  // inside the lengths of the study, and beyond them
    const Study s(p, {.lengths = {2, 10, 100, 1000}, .metrics = {Metric::output}});
    const Reach got = s.reach(fraction, s.assemble(compute_here(s.cells())));
    EXPECT_EQ(got.status, ReachStatus::certified);
    const auto want = shortest_length(p, {.eps = fraction * fraction, .relative = true});
    EXPECT_EQ(got.length, want.length);
  }
}

TEST(Reach, SaysWhenTheFirstLengthIsEnough) {
  const Study s(gaussian_problem(2, 0.4), {.lengths = {1000000, 2000000}});
  const Reach got = s.reach(0.5, s.assemble(compute_here(s.cells())));
  EXPECT_EQ(got.status, ReachStatus::shorter);
  EXPECT_EQ(got.length, 1000000);
}

// The curve of given queries has no noise under the exact engine: the power law between two points
// is off by its bend only.
TEST(Reach, ReadsOffACurve) {
  Problem p = gaussian_problem(2, 0.4);
  p.points = testing::random_matrix(Stream(4), 3, 2);
  p.nu.reset();
  const Study s(p, {.lengths = {10, 100, 1000}, .metrics = {Metric::output}});
  const StudyResult result = s.assemble(compute_here(s.cells()));
  const Reach got = s.reach(0.2, result);
  const auto want = shortest_length(p, {.eps = 0.04, .relative = true});
  EXPECT_EQ(got.status, ReachStatus::interpolated);
  EXPECT_NEAR(static_cast<double>(*got.length), static_cast<double>(*want.length),
              0.03 * static_cast<double>(*want.length));
  EXPECT_EQ(got.low, got.length);
  const Reach far = s.reach(0.01, result);
  EXPECT_EQ(far.status, ReachStatus::extrapolated);
  EXPECT_NEAR(static_cast<double>(*far.length),
              static_cast<double>(*shortest_length(p, {.eps = 1e-4, .relative = true}).length),
              0.01 * static_cast<double>(*far.length));
}

// Sampled curves have a bracket, and it holds the exact answer.
TEST(Reach, BracketsASampledCurve) {
  const Problem p = gaussian_problem(1, 0.3);
  const Study s(p, {.lengths = {4, 16, 64, 256},
                    .metrics = {Metric::output},
                    .engine = Engine::direct,
                    .queries = 200,
                    .seed = 5});
  const Reach got = s.reach(0.4, s.assemble(compute_here(s.cells())));
  const auto want = shortest_length(p, {.eps = 0.16, .relative = true});
  ASSERT_EQ(got.status, ReachStatus::interpolated);
  EXPECT_LT(*got.low, *got.high);
  EXPECT_LE(*got.low, *want.length);
  EXPECT_GE(*got.high, *want.length);
}

TEST(Reach, NoConstantNoExtrapolation) {
  const Study s(gaussian_problem(1, 0.9),
                {.lengths = {10, 20, 40}, .engine = Engine::direct, .queries = 40});
  const Reach got = s.reach(0.001, s.assemble(compute_here(s.cells())));
  EXPECT_EQ(got.status, ReachStatus::beyond);
  EXPECT_FALSE(got.length);
}

// E|X|^2 by queries against the closed form, with a standard error that fits.
TEST(Reach, SizeOfTheLimitAgrees) {
  StudyOptions o{.lengths = {10}, .queries = 2000, .replicates = 1, .seed = 2};
  const Problem p = gaussian_problem(2, 0.4);
  const StudyResult exact = study(p, o);
  o.engine = Engine::sampled;
  const StudyResult sampled = study(p, o);
  for (std::size_t k = 0; k < exact.limits.size(); ++k) {
    EXPECT_EQ(exact.limits[k].std_error, 0);
    if (sampled.limits[k].std_error == 0) {  // X of this metric does not depend on the query
      EXPECT_TRUE(testing::close(sampled.limits[k].mean_square, exact.limits[k].mean_square, 1e-9));
      continue;
    }
    EXPECT_TRUE(testing::agrees(
        {sampled.limits[k].mean_square, sampled.limits[k].std_error, 2000, Engine::sampled},
        exact.limits[k].mean_square));
  }
}

// Squares of 64 drawn queries are skewed: the interval reaches further up than down, and holds the
// closed form as often as it says.
TEST(Reach, TheIntervalOfTheSizeOfTheLimitHoldsIt) {
  const Problem p = gaussian_problem(1, 0.05);
  StudyOptions o{.lengths = {4}, .metrics = {Metric::output}, .queries = 64, .replicates = 1};
  const LimitSize exact = study(p, o).limits[0];
  EXPECT_EQ(exact.ci.lo, exact.mean_square);
  EXPECT_EQ(exact.ci.hi, exact.mean_square);
  o.engine = Engine::sampled;
  testing::Coverage c{.seeds = 1000};
  for (o.seed = 0; o.seed < 1000; ++o.seed) {
    const LimitSize size = study(p, o).limits[0];
    c.held += size.ci.contains(exact.mean_square) ? 1 : 0;
    EXPECT_GT(size.ci.hi - size.mean_square, size.mean_square - size.ci.lo);
  }
  testing::expect_calibrated(c, "size of the limit");
}

}  // namespace
}  // namespace esscher
