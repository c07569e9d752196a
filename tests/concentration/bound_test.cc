#include "esscher/concentration/bound.h"

#include <gtest/gtest.h>

#include "esscher/concentration/constant.h"
#include "esscher/concentration/study.h"
#include "esscher/measure/gaussian.h"
#include "tests/concentration/problems.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::gaussian_problem;

TEST(Bound, HypothesesAndFit) {
  const Problem p = gaussian_problem(1, 0.5);
  const StudyResult r = study(p, {{1, 10, 100, 1000, 10000, 100000, 1000000}});
  const BoundReport b = check_bound(Proposition::prop31, p, r, 1);
  ASSERT_EQ(b.fits.size(), 1u);
  EXPECT_TRUE(b.fits[0].holds) << b.verdict.text;
  EXPECT_EQ(b.verdict.status, BoundStatus::holds);
  EXPECT_GT(b.fits[0].c2, 0.5);
  const auto failing = [](const BoundReport& report) {
    std::string names;
    for (const Hypothesis& h : report.hypotheses) names += h.holds ? "" : h.name + ";";
    return names;
  };
  EXPECT_EQ(failing(b), "L >= 2;");
  EXPECT_EQ(check_bound(Proposition::prop34, p, r, 1).fits.size(), 2u);
  Problem shifted = p;
  shifted.mu = Gaussian(Vector{{0.3}}, Matrix::Constant(1, 1, 0.25));
  EXPECT_EQ(failing(check_bound(Proposition::prop31, shifted, r, 1)), "mu is centred;L >= 2;");
  const std::int64_t L = bound_length(b.fits[0], b.sigma, 1e-4);
  EXPECT_LE(bound_at(b.fits[0], b.sigma, L), 1e-4);
  EXPECT_GT(bound_at(b.fits[0], b.sigma, L - 1), 1e-4);
}

TEST(Bound, VerdictsAreJudgedFromNumbers) {
  const std::vector<Hypothesis> good = {{"mu is centred", true, 0, "|mean| = 0"}};
  const std::vector<Hypothesis> bad = {{"mu is centred", false, 1, "|mean| = 1"},
                                       {"sigma >= 1", false, 0.5, "sigma = 0.5"}};
  const std::vector<BoundFit> holds = {{.holds = true}};
  const std::vector<BoundFit> fails = {{.holds = true}, {.holds = false, .first_violation = 100}};
  EXPECT_EQ(bound_verdict(good, holds).status, BoundStatus::holds);
  EXPECT_EQ(bound_verdict(good, holds).text,
            "all hypotheses hold. With constants fitted on the shorter half of the lengths the "
            "bound holds on the rest");
  EXPECT_EQ(bound_verdict(good, fails).status, BoundStatus::fails);
  EXPECT_NE(bound_verdict(good, fails).text.find("FAILS on the rest"), std::string::npos);
  EXPECT_EQ(bound_verdict(bad, {}).status, BoundStatus::no_fit);
  EXPECT_EQ(bound_verdict(bad, {}).text,
            "mu is centred fails (|mean| = 1); sigma >= 1 fails (sigma = 0.5). No fit: it needs a "
            "finite sigma, a metric of this proposition and 4 lengths >= 2");
}

}  // namespace
}  // namespace esscher
