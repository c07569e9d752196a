// One token among a crowd: against every prompt there is, drawn prompts, and the engines without it.
#include "esscher/scaling/crowd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/random/stream.h"
#include "esscher/universal/needle.h"
#include "esscher/universal/participation.h"
#include "tests/testing.h"

namespace esscher {
namespace {

// All 3^2 crowds of two out of three scores.
TEST(Crowd, IsTheAverageOverAllPrompts) {
  const Vector s{{0.3, -1.0, 2.0}};
  for (const double f : {0.5, 1.0, 3.0}) {
    const double c = 1.1;
    double H = 0, needle = 0;
    for (const double a : s) {
      for (const double b : s) {
        const double w = std::exp(f * c), x = std::exp(f * a), y = std::exp(f * b);
        const double Z = w + x + y;
        H += (w * w + x * x + y * y) / (Z * Z) / 9;
        needle += w / Z / 9;
      }
    }
    const Crowd::Weights found = Crowd::of_scores(s, c).at(3, f);
    EXPECT_NEAR(found.H, H, 1e-11);
    EXPECT_NEAR(found.needle, needle, 1e-11);
  }
}

TEST(Crowd, OfGaussianScoresIsTheUniversalOne) {
  const double tau = 1.4, N = 5000;
  const Crowd lost = Crowd::gaussian(0, tau, -200);
  EXPECT_NEAR(lost.at(N).H / mean_weight_square(N - 1, tau), 1, 1e-9);
  for (const double c : {2.0, 9.0}) {
    EXPECT_NEAR(Crowd::gaussian(0, tau, c).at(N).needle / needle_weight(N - 1, tau, c), 1, 1e-8);
    EXPECT_NEAR(Crowd::gaussian(3, tau, c + 3).at(N).needle / needle_weight(N - 1, tau, c), 1,
                1e-8);
  }
  // Factors up to 4.
  EXPECT_NEAR(Crowd::gaussian(0, 0.5, -300).at(N, 4).H / mean_weight_square(N - 1, 2), 1, 1e-8);
}

TEST(Crowd, IsTheMeanOverDrawnPrompts) {
  const Stream stream(3);
  Vector s(40);
  for (Index i = 0; i < s.size(); ++i) s(i) = 1.5 * stream.normal(static_cast<std::uint64_t>(i));
  const double c = 3.5;
  const int N = 90;
  Moments H, needle;
  for (std::uint64_t draw = 0; draw < 20000; ++draw) {
    std::vector<double> u(N - 1);
    stream.split(7).split(draw).fill_uniform(0, u);
    double one = std::exp(c), two = one * one;
    for (const double x : u) {
      const double e = std::exp(s(static_cast<Index>(x * static_cast<double>(s.size()))));
      one += e;
      two += e * e;
    }
    H.add(two / (one * one));
    needle.add(std::exp(c) / one);
  }
  const Crowd::Weights found = Crowd::of_scores(s, c).at(N);
  EXPECT_TRUE(testing::agrees(H.estimate(Engine::sampled), found.H));
  EXPECT_TRUE(testing::agrees(needle.estimate(Engine::sampled), found.needle));
}

// Beyond kMaxNodes scores are moved to a lattice.
TEST(Crowd, OfManyScoresIsThatOfAllOfThem) {
  Vector few(600), many(1800);
  for (Index i = 0; i < 600; ++i) few(i) = 1.3 * Stream(5).normal(static_cast<std::uint64_t>(i));
  many << few, few, few;  // the same law
  for (const double f : {0.5, 1.0, 3.0}) {
    const Crowd::Weights a = Crowd::of_scores(few, 4).at(5000, f);
    const Crowd::Weights b = Crowd::of_scores(many, 4).at(5000, f);
    EXPECT_NEAR(b.H / a.H, 1, 1e-9) << f;
    EXPECT_NEAR(b.needle / a.needle, 1, 1e-9) << f;
  }
}

TEST(Crowd, FactorsKeepTheEffectiveSampleSize) {
  const Vector s{{0.0, 0.5, -0.3, 1.2, 0.9, -2.0, 0.1}};
  const Crowd crowd = Crowd::of_scores(s, 2.5);
  const double today = 1 / crowd.at(8).H;
  EXPECT_NEAR(crowd.factor_for(today, 8).value(), 1, 1e-8);
  for (const double N : {4.0, 16.0, 128.0}) {
    const double f = crowd.factor_for(today, N).value();
    EXPECT_NEAR(1 / crowd.at(N, f).H / today, 1, 1e-8) << N;
    EXPECT_EQ(f > 1, N > 8) << N;
  }
  EXPECT_FALSE(crowd.factor_for(1e9, 16));
}

TEST(Crowd, RefusesWhatIsNotThere) {
  EXPECT_THROW((void)Crowd::of_scores(Vector(), 0), ArgumentError);
  EXPECT_THROW((void)Crowd::of_scores(Vector{{std::nan("")}}, 0), ArgumentError);
}

}  // namespace
}  // namespace esscher
