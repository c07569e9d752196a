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

// The integral of crowd.h with every score as it is.
Crowd::Weights slow_twin(const Vector& s, double c, double N, double f) {
  Crowd::Weights out;
  constexpr double kStep = 0.2;
  for (double u = -50; u < 20; u += kStep) {
    double psi = 0, pair = 0;
    for (const double score : s) {
      const double y = std::exp(std::min(f * score + u, 30.0));
      psi -= std::expm1(-y) / static_cast<double>(s.size());
      pair += y * y * std::exp(-y) / static_cast<double>(s.size());
    }
    const double own = std::exp(std::min(f * c + u, 30.0));
    const double rest = std::exp((N - 2) * std::log1p(-std::min(psi, 1 - 1e-16)) - own);
    out.H += kStep * rest * ((N - 1) * pair + own * own * (1 - psi));
    out.needle += kStep * rest * own * (1 - psi);
  }
  return out;
}

TEST(Crowd, IsTheIntegralOverEveryScore) {
  Vector s(100);
  for (Index i = 0; i < s.size(); ++i) s(i) = 2 + Stream(5).normal(static_cast<std::uint64_t>(i));
  for (const double c : {4.0, -3.0, 9.0}) {
    for (const double f : {0.1, 0.7, 1.0, 3.0}) {
      const Crowd::Weights slow = slow_twin(s, c, 5000, f),
                           found = Crowd::of_scores(s, c).at(5000, f);
      EXPECT_NEAR(found.H / slow.H, 1, 1e-10) << c << ' ' << f;
      EXPECT_NEAR(found.needle / slow.needle, 1, 1e-10) << c << ' ' << f;
    }
  }
}

// Scores far below the others have no weight, and cost nothing.
TEST(Crowd, ServesScoresOfAnySize) {
  const Vector near{{0.0, 0.5, -1.0, -300.0}}, far{{0.0, 0.5, -1.0, -1e6}};
  const Crowd::Weights a = Crowd::of_scores(near, 1).at(100), b = Crowd::of_scores(far, 1).at(100);
  EXPECT_NEAR(a.H, b.H, 1e-12);
  EXPECT_NEAR(a.needle, b.needle, 1e-12);
  EXPECT_NEAR(Crowd::of_scores(near, 1e4).at(100).needle, 1, 1e-12);
  EXPECT_NEAR(Crowd::of_scores(near, 1e4).at(100).H, 1, 1e-12);
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
  // Nearly flat weights need a small factor, far below the first octave.
  const double flat = crowd.factor_for(7.99, 8).value();
  EXPECT_LT(flat, 0.25);
  EXPECT_NEAR(1 / crowd.at(8, flat).H, 7.99, 1e-7);
  EXPECT_FALSE(crowd.factor_for(1e9, 16));
}

TEST(Crowd, RefusesWhatIsNotThere) {
  EXPECT_THROW((void)Crowd::of_scores(Vector(), 0), ArgumentError);
  EXPECT_THROW((void)Crowd::of_scores(Vector{{std::nan("")}}, 0), ArgumentError);
}

}  // namespace
}  // namespace esscher
