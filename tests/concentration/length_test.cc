#include "esscher/concentration/length.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/concentration/gaussian_average.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/mixture.h"
#include "tests/concentration/problems.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::gaussian_problem;

TEST(Length, CertifiedByItsNeighbour) {
  const Problem p = gaussian_problem(3, 0.5);
  for (Metric metric : {Metric::output, Metric::grad_u}) {
    LengthOptions o{.eps = 1e-3, .metric = metric};
    const LengthAnswer a = shortest_length(p, o);
    ASSERT_TRUE(a.length.has_value());
    EXPECT_EQ(a.status, "certified");
    const GaussianAverage D({metric}, *gaussian_law(p.mu), p.attention, *gaussian_law(*p.nu));
    EXPECT_LE(D.at(*a.length)[0].value, 1e-3);
    EXPECT_GT(D.at(*a.length - 1)[0].value, 1e-3);
    EXPECT_EQ(a.value, D.at(*a.length)[0].value);
    EXPECT_EQ(a.value_before, D.at(*a.length - 1)[0].value);
    EXPECT_TRUE(close(a.clt, static_cast<double>(*a.length), 0.3));
  }
}

TEST(Length, RelativeAndQuantile) {
  const Problem p = gaussian_problem(2, 0.4);
  const LengthAnswer relative = shortest_length(p, {.eps = 0.01, .relative = true});
  EXPECT_TRUE(close(relative.eps, 0.01 * 2 * 0.16, 1e-10));
  const LengthAnswer q = shortest_length(p, {.eps = 1e-2, .quantile = 0.9, .queries = 200});
  const LengthAnswer mean = shortest_length(p, {.eps = 1e-2});
  ASSERT_TRUE(q.length && mean.length);
  EXPECT_LE(q.value, 1e-2);
  EXPECT_GT(q.value_before, 1e-2);
  EXPECT_GT(*q.length, *mean.length);
}

TEST(Length, NeverIsExplained) {
  const LengthAnswer tiny = shortest_length(gaussian_problem(1, 0.9), {.eps = 1e-30});
  EXPECT_FALSE(tiny.length.has_value());
  EXPECT_EQ(tiny.status, "never");
  EXPECT_NE(tiny.explanation.find("1e15"), std::string::npos);
  Problem laplace = gaussian_problem(1, 1.0);
  laplace.mu = Laplace(1, 1.0);
  const LengthAnswer none = shortest_length(laplace, {.eps = 0.1});
  EXPECT_EQ(none.status, "never");
  EXPECT_NE(none.explanation.find("infinite"), std::string::npos);
}

// Two equal components are one Gaussian, whose answer is certain.
TEST(Length, QueriesOfALawLeaveABracket) {
  const Problem one = gaussian_problem(2, 0.4);
  Problem two = one;
  two.mu = Mixture(Vector{{0.5, 0.5}}, {one.mu, one.mu});
  const LengthAnswer want = shortest_length(one, {.eps = 1e-2});
  const LengthAnswer got = shortest_length(two, {.eps = 1e-2, .queries = 128, .seed = 2});
  ASSERT_TRUE(got.length && want.length);
  EXPECT_EQ(want.status, "certified");
  EXPECT_EQ(got.status, "estimated");
  EXPECT_EQ(got.engine, Engine::exact);
  EXPECT_LE(got.value, 1e-2);
  EXPECT_GT(got.value_before, 1e-2);
  EXPECT_LE(got.bracket_lo, *want.length);
  EXPECT_GE(got.bracket_hi, *want.length);
  EXPECT_LT(got.bracket_lo, *got.length);
  EXPECT_GT(got.bracket_hi, *got.length);
  EXPECT_TRUE(close(static_cast<double>(got.bracket_hi), static_cast<double>(*want.length), 0.05));
  EXPECT_EQ(got.error_probability, 0.05);
  two.nu.reset();
  two.points = Matrix{{0.5, 1.0}, {-1.0, 0.3}};
  EXPECT_EQ(shortest_length(two, {.eps = 1e-2}).status, "certified") << "given queries";
}

// Laplace tokens have no limit at |z| >= 1, a third of these queries: their average has no answer,
// nor has a high quantile, but a low one has.
TEST(Length, QuantileBelowTheQueriesWithoutALimit) {
  Problem p = gaussian_problem(1, 1.0);
  p.mu = Laplace(1, 1.0);
  LengthOptions o{.eps = 0.5, .quantile = 0.9, .queries = 200};
  EXPECT_EQ(shortest_length(p, o).status, "never");
  o.quantile = 0.3;
  const LengthAnswer got = shortest_length(p, o);
  ASSERT_TRUE(got.length.has_value()) << got.explanation;
  EXPECT_EQ(got.status, "estimated");
  EXPECT_LE(got.value, 0.5);
  EXPECT_NE(got.explanation.find("no limit"), std::string::npos) << got.explanation;
  EXPECT_TRUE(std::isfinite(got.clt));
}

TEST(Length, StochasticAgreesWithCertified) {
  const Problem p = gaussian_problem(2, 0.3);
  const LengthAnswer exact = shortest_length(p, {.eps = 0.05});
  const LengthAnswer got =
      shortest_length(p, {.eps = 0.05, .engine = Engine::direct, .queries = 400, .replicates = 2});
  ASSERT_TRUE(got.length && exact.length);
  EXPECT_EQ(got.status, "estimated");
  EXPECT_TRUE(close(static_cast<double>(*got.length), static_cast<double>(*exact.length), 0.15));
  EXPECT_GT(got.error_probability, 0);
  EXPECT_LE(got.error_probability, 0.05);
  EXPECT_LE(got.bracket_lo, *exact.length);
  EXPECT_GE(got.bracket_hi, *exact.length);
  EXPECT_LT(got.bracket_hi, 3 * got.bracket_lo);

  // A quantile over queries of errors averaged over many prompts, against their exact errors.
  LengthOptions o{.eps = 0.05, .quantile = 0.8, .queries = 300, .replicates = 40};
  const LengthAnswer certain = shortest_length(p, o);
  o.engine = Engine::sampled;
  const LengthAnswer quantile = shortest_length(p, o);
  ASSERT_TRUE(quantile.length && certain.length);
  EXPECT_LE(quantile.error_probability, 0.05);
  EXPECT_LE(quantile.bracket_lo, *certain.length);
  EXPECT_GE(quantile.bracket_hi, *certain.length);
  EXPECT_TRUE(
      close(static_cast<double>(*quantile.length), static_cast<double>(*certain.length), 0.2));
}

}  // namespace
}  // namespace esscher
