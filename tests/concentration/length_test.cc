#include "esscher/concentration/length.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/concentration/gaussian_average.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/mixture.h"
#include "tests/concentration/problems.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using testing::gaussian_problem;

// D(L) of the output for Gaussian tokens and queries, in closed form.
double D_of(const Problem& p, std::int64_t L) {
  const GaussianAverage D({Metric::output}, *gaussian_law(p.mu), p.attention, *gaussian_law(*p.nu));
  return D.at(L)[0].value;
}

TEST(Length, CertifiedByItsNeighbour) {
  const Problem p = gaussian_problem(3, 0.5);
  for (Metric metric : {Metric::output, Metric::grad_u}) {
    LengthOptions o{.eps = 1e-3, .metric = metric};
    const LengthAnswer a = shortest_length(p, o);
    ASSERT_TRUE(a.length.has_value());
    EXPECT_EQ(a.status, LengthStatus::certified);
    const GaussianAverage D({metric}, *gaussian_law(p.mu), p.attention, *gaussian_law(*p.nu));
    EXPECT_LE(D.at(*a.length)[0].value, 1e-3);
    EXPECT_GT(D.at(*a.length - 1)[0].value, 1e-3);
    EXPECT_EQ(a.value, D.at(*a.length)[0].value);
    EXPECT_EQ(a.value_before, D.at(*a.length - 1)[0].value);
    EXPECT_EQ(a.clt, std::ceil(D.constant(0) / 1e-3));
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
  EXPECT_EQ(tiny.status, LengthStatus::never);
  EXPECT_NE(tiny.explanation.find("1e15"), std::string::npos);
  Problem laplace = gaussian_problem(1, 1.0);
  laplace.mu = Laplace(1, 1.0);
  const LengthAnswer none = shortest_length(laplace, {.eps = 0.1});
  EXPECT_EQ(none.status, LengthStatus::never);
  EXPECT_NE(none.explanation.find("infinite"), std::string::npos);
}

// Scores beyond the exact engine are known before the search: it samples, and says why.
TEST(Length, SharpScoresAreSampledAndExplained) {
  Problem sharp = gaussian_problem(1, 1.0);
  sharp.nu.reset();
  sharp.points = Matrix::Constant(1, 1, 700.0);
  const LengthAnswer got =
      shortest_length(sharp, {.eps = 1e6, .replicates = 4, .max_sampled_length = 16});
  EXPECT_EQ(got.engine, Engine::sampled);
  EXPECT_NE(got.explanation.find("beyond tau = 600"), std::string::npos) << got.explanation;
  EXPECT_THROW((void)shortest_length(sharp, {.eps = 1e6, .engine = Engine::exact}),
               CapabilityError);
}

// Two equal components are one Gaussian, whose answer is certain.
TEST(Length, QueriesOfALawLeaveABracket) {
  const Problem one = gaussian_problem(2, 0.4);
  Problem two = one;
  two.mu = Mixture(Vector{{0.5, 0.5}}, {one.mu, one.mu});
  const LengthAnswer want = shortest_length(one, {.eps = 1e-2});
  const LengthAnswer got = shortest_length(two, {.eps = 1e-2, .queries = 128, .seed = 2});
  ASSERT_TRUE(got.length && want.length);
  EXPECT_EQ(want.status, LengthStatus::certified);
  EXPECT_EQ(got.status, LengthStatus::estimated);
  EXPECT_EQ(got.engine, Engine::quadrature);
  EXPECT_LE(got.value, 1e-2);
  EXPECT_GT(got.value_before, 1e-2);
  EXPECT_LE(got.bracket_lo, *want.length);
  EXPECT_GE(got.bracket_hi, *want.length);
  EXPECT_LT(got.bracket_lo, *got.length);
  EXPECT_GT(got.bracket_hi, *got.length);
  // The bracket is as wide as the error of the queries makes it: at its ends the true D is not
  // farther from eps than the helper allows.
  for (const std::int64_t end : {got.bracket_lo, got.bracket_hi}) {
    EXPECT_TRUE(agrees({D_of(one, end), got.std_error, 128}, 1e-2)) << end;
  }
  EXPECT_EQ(got.error_probability, 0.05);
  two.nu.reset();
  two.points = Matrix{{0.5, 1.0}, {-1.0, 0.3}};
  EXPECT_EQ(shortest_length(two, {.eps = 1e-2}).status, LengthStatus::certified) << "given queries";
}

// Laplace tokens have no limit at |z| >= 1, a third of these queries: their average has no answer,
// nor has a high quantile, but a low one has.
TEST(Length, QuantileBelowTheQueriesWithoutALimit) {
  Problem p = gaussian_problem(1, 1.0);
  p.mu = Laplace(1, 1.0);
  LengthOptions o{.eps = 0.5, .quantile = 0.9, .queries = 200};
  EXPECT_EQ(shortest_length(p, o).status, LengthStatus::never);
  o.quantile = 0.3;
  const LengthAnswer got = shortest_length(p, o);
  ASSERT_TRUE(got.length.has_value()) << got.explanation;
  EXPECT_EQ(got.status, LengthStatus::estimated);
  EXPECT_TRUE(agrees({got.value, got.std_error, 200}, 0.5));
  EXPECT_NE(got.explanation.find("no limit"), std::string::npos) << got.explanation;
  EXPECT_TRUE(std::isfinite(got.clt));
}

TEST(Length, StochasticAgreesWithCertified) {
  const Problem p = gaussian_problem(2, 0.3);
  const LengthAnswer exact = shortest_length(p, {.eps = 0.05});
  const LengthAnswer got =
      shortest_length(p, {.eps = 0.05, .engine = Engine::direct, .queries = 400, .replicates = 2});
  ASSERT_TRUE(got.length && exact.length);
  EXPECT_EQ(got.status, LengthStatus::estimated);
  EXPECT_TRUE(agrees({got.value, got.std_error, 400}, D_of(p, *got.length)));
  EXPECT_TRUE(agrees({D_of(p, *got.length), got.std_error, 400}, 0.05)) << *got.length;
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
}

}  // namespace
}  // namespace esscher
