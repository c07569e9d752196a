// The prediction that holds across phases, against the exact integrals; and predictions that every
// exact number has beside it.
#include "esscher/scaling/crossover.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/student.h"
#include "esscher/scaling/sampled_weights.h"
#include "esscher/scaling/scaling.h"
#include "esscher/universal/free_energy.h"
#include "esscher/universal/needle.h"
#include "esscher/universal/participation.h"

namespace esscher {
namespace {

const double kTen = std::log(10.0);
const double kCs[] = {0.2, 0.5, 0.7, 0.8, 0.8165, 0.83, 0.9, 1.1, 1.3, 1.4142, 1.45, 1.6, 2.0, 3.0};

// Within 7 % from 100 tokens on and within 0.5 % at 1e60, through all phases and their boundaries.
TEST(Crossover, MeetsTheExactNumbersInAllPhases) {
  for (const double decades : {2.0, 4.0, 8.0, 15.0, 60.0, 250.0}) {
    const double allowed = decades < 4 ? 0.07 : decades < 60 ? 0.04 : 0.005;
    for (const double c : kCs) {
      const double x = decades * kTen, n = std::exp(x), tau = c * std::sqrt(x);
      const Crossover at = crossover(ScoreModel::gaussian(tau), 1, x);
      EXPECT_NEAR(at.H / mean_weight_square(n, tau), 1, allowed) << decades << " " << c;
      EXPECT_NEAR(at.free_energy, free_energy(n, tau).F, 3 * allowed * std::max(1.0, c))
          << decades << " " << c;
      for (const double gap : {-2.0, 0.0, 3.0}) {
        const double score = at.free_energy + gap;
        EXPECT_NEAR(at.needle(score), needle_weight(n, tau, score), 0.5 * allowed)
            << decades << " " << c << " " << gap;
      }
    }
  }
}

TEST(Crossover, EntropyIsThatOfTheWeights) {
  for (const double decades : {4.0, 15.0, 60.0}) {
    for (const double c : kCs) {
      const double x = decades * kTen, tau = c * std::sqrt(x);
      EXPECT_NEAR(crossover_entropy(ScoreModel::gaussian(tau), 1, x),
                  weight_entropy(std::exp(x), tau), 0.25)
          << decades << " " << c;
    }
  }
}

// No jump: a step of 1e-3 in c changes the prediction by little, across both boundaries.
TEST(Crossover, DoesNotJump) {
  const double x = 15 * kTen;
  double last = 0;
  for (double c = 0.7; c < 1.6; c += 1e-3) {
    const double H = std::log(crossover(ScoreModel::gaussian(c * std::sqrt(x)), 1, x).H);
    if (last != 0) {
      EXPECT_GT(H, last) << c;
      EXPECT_LT(H - last, 0.08) << c;
    }
    last = H;
  }
}

TEST(Crossover, NearFreezingIsTheMillsRatio) {
  for (const double decades : {60.0, 250.0}) {
    const double x = decades * kTen;
    const double tau = std::sqrt(2 * x);
    EXPECT_NEAR(freezing_crossover(tau, x) * std::sqrt(std::numbers::pi * x), 1, 0.04);
    for (const double shift : {-1.0, 0.0, 1.0, 3.0}) {
      const double exact = mean_weight_square(std::exp(x), tau + shift);
      EXPECT_NEAR(freezing_crossover(tau + shift, x) / exact, 1, 0.02) << decades << " " << shift;
    }
  }
}

// Layers: Gaussian tokens give the Gaussian prediction, and coins the exact number of coins.
TEST(Crossover, ServesLayers) {
  const Matrix I = Matrix::Identity(2, 2);
  const ScoreModel plain = ScoreModel::gaussian(1.3);
  const ScoreModel layer =
      ScoreModel::layer({Gaussian(I), Attention::from_uv(I, I), Vector{{1.3, 0.0}}});
  const ScoreModel coins =
      ScoreModel::layer({Rademacher(2), Attention::from_uv(I, I), Vector{{1.3, 0.7}}});
  for (const double f : {0.5, 1.0, 2.5}) {
    const double x = std::log(1e4);
    EXPECT_NEAR(crossover(layer, f, x).H / crossover(plain, f, x).H, 1, 1e-8);
    EXPECT_NEAR(crossover(layer, f, x).free_energy, crossover(plain, f, x).free_energy, 1e-8);
    EXPECT_NEAR(crossover(coins, f, x).H / coins.weights(f, 1e4).H, 1, 0.01);
    EXPECT_NEAR(crossover_entropy(coins, f, x), coins.weights(f, 1e4).entropy, 0.01);
  }
  EXPECT_THROW((void)crossover(plain, 1, 0), ArgumentError);
}

// e^s of Student scores has no mean, so that no phase is defined.
TEST(Crossover, LawsWithoutExponentialMomentsAreRefused) {
  const Matrix I = Matrix::Identity(1, 1);
  EXPECT_THROW((void)ScoreModel::layer({Student(4.0, I), Attention::from_uv(I, I), Vector{{0.5}}}),
               CapabilityError);
}

TEST(Predictions, StandBesideEveryExactNumber) {
  const ScoreModel scores = ScoreModel::gaussian(1);
  for (const double c : {0.5, 1.0, 1.2, 2.5}) {
    const Schedule schedule({.kind = ScheduleKind::sqrt_log, .c = c});
    const ScalingRow row = scaling_row(scores, schedule, 1e15, {.gap = 3, .draws = 0});
    EXPECT_NEAR(row.crossover_H / row.H, 1, 0.02) << c;
    EXPECT_NEAR(row.crossover_entropy, row.entropy, 0.01) << c;
    EXPECT_NEAR(row.crossover_needle, row.needle, 0.02) << c;
    EXPECT_NEAR(row.boundary_distance,
                row.tau * std::min(std::abs(std::numbers::sqrt2 / c - 1),
                                   std::abs(std::sqrt(2.0 / 3) / c - 1)),
                1e-6);
  }
}

// D(L) is approached like 1/log L outside the averaging phase: closer at every step, and close at
// 1e15 where no boundary is near.
TEST(Predictions, OfTheErrorTendToIt) {
  const ScoreModel scores = ScoreModel::gaussian(1);
  for (const double c : {0.5, 1.1, 1.2, 1.3, 2.0, 2.5}) {
    const Schedule schedule({.kind = ScheduleKind::sqrt_log, .c = c});
    double last = 10;
    for (const double L : {1e3, 1e6, 1e9, 1e12, 1e15}) {
      const ScalingRow row = scaling_row(scores, schedule, L, {.draws = 0});
      ASSERT_TRUE(row.error);
      const double away = std::abs(std::log(row.predicted_error / *row.error));
      EXPECT_LT(away, last) << c << " " << L;
      last = away;
    }
    const double allowed = c == 0.5 ? 1e-4 : c == 1.1 || c == 2.5 ? 0.12 : 1;
    EXPECT_LT(last, allowed) << c;
  }
}

// One formula for all phases: at every c within 16 % from 100 tokens on, 10 % from 10^4, 2.5 % at 10^15.
TEST(Crossover, ErrorMeetsTheExactOneInAllPhases) {
  const ScoreModel scores = ScoreModel::gaussian(1);
  for (const double c : kCs) {
    const Schedule schedule({.kind = ScheduleKind::sqrt_log, .c = c});
    for (const double L : {1e2, 1e4, 1e8, 1e15}) {
      const ScalingRow row = scaling_row(scores, schedule, L, {.draws = 0});
      ASSERT_TRUE(row.error && row.crossover_error);
      const double allowed = L < 1e4 ? 0.16 : L < 1e8 ? 0.1 : L < 1e15 ? 0.05 : 0.025;
      EXPECT_NEAR(*row.crossover_error / *row.error, 1, allowed) << c << " " << L;
    }
  }
}

// Immense prompts, where a direct sum over scores would lose all digits to cancellation.
TEST(Crossover, ErrorOfImmensePrompts) {
  for (const double decades : {60.0, 250.0}) {
    const double x = decades * kTen;
    const double low = std::sqrt(0.25 * x), high = 3 * std::sqrt(x);
    EXPECT_NEAR(crossover_error(ScoreModel::gaussian(low), 1, x) /
                    ((1 + low * low) * std::exp(low * low - x)),
                1, 1e-6);
    EXPECT_NEAR(
        crossover_error(ScoreModel::gaussian(high), 1, x) / std::pow(high - std::sqrt(2 * x), 2), 1,
        0.05);
  }
}

// A layer that reads the coordinate that its scores are made of has the error of Gaussian scores; coins
// and a reading of both coordinates have that of the exact engine.
TEST(Crossover, ErrorServesLayers) {
  const Matrix I = Matrix::Identity(2, 2);
  const Attention along = Attention::from_uv(I, Matrix{{1.0, 0.0}});
  const ScoreModel plain = ScoreModel::gaussian(1.3);
  const ScoreModel layer = ScoreModel::layer({Gaussian(I), along, Vector{{1.3, 0.0}}});
  const Matrix V{{0.3, -1.0}, {0.8, 0.5}};
  const ScoreModel coins =
      ScoreModel::layer({Rademacher(2), Attention::from_uv(I, V), Vector{{1.3, 0.7}}});
  for (const double f : {0.5, 1.0, 2.0, 3.0}) {
    for (const double n : {1e3, 1e6, 1e12}) {
      const double x = std::log(n);
      EXPECT_NEAR(crossover_error(layer, f, x) / crossover_error(plain, f, x), 1, 1e-6)
          << f << " " << n;
      EXPECT_NEAR(crossover_error(coins, f, x) / *coins.weights(f, n).error, 1, 0.06)
          << f << " " << n;
    }
  }
  const ScoreModel nothing = ScoreModel::layer(
      {Gaussian(I), Attention::from_uv(I, Matrix::Zero(1, 2)), Vector{{1.3, 0.0}}});
  EXPECT_EQ(crossover_error(nothing, 1, 5), 0);
}

TEST(Predictions, OfTheMedianMeetIt) {
  for (const double decades : {3.0, 8.0, 60.0, 200.0}) {
    for (const double c : {0.3, 0.8, 1.2, 1.6, 3.0}) {
      const double x = decades * kTen, tau = c * std::sqrt(x);
      const auto found =
          median_weight_square(ScoreModel::gaussian(tau), 1, std::exp(x), 401, Stream(1));
      ASSERT_TRUE(found);
      EXPECT_NEAR(predicted_median_weight_square(tau, x) / found->value, 1,
                  0.1 + 6 * found->std_error / found->value)
          << decades << " " << c;
    }
  }
}

TEST(Predictions, RetrievalLengthIsWhereTheNeedleWeighsOneHalf) {
  const ScoreModel scores = ScoreModel::gaussian(1);
  const RetrievalLength found = retrieval_length(scores, Schedule({}), 8);
  ASSERT_TRUE(found.L && found.predicted_L);
  EXPECT_NEAR(scores.needle(1, *found.L, 8), 0.5, 1e-9);
  EXPECT_NEAR(*found.predicted_L / *found.L, 1, 0.01);
  EXPECT_EQ(retrieval_length(scores, Schedule({}), -5).L, 2);
  EXPECT_FALSE(retrieval_length(scores, Schedule({}), 60).L);
}

// Lengths beyond 1e154, whose square overflows.
TEST(Predictions, EntropyServesImmenseLengths) {
  for (const double decades : {150.0, 160.0, 250.0, 299.0}) {
    const double x = decades * kTen, c = 0.5;
    EXPECT_NEAR(weight_entropy(std::exp(x), c * std::sqrt(x)) / x, 1 - c * c / 2, 1e-6) << decades;
  }
}

// More tokens or cooler scores spread the weights; a larger gap helps the needle; each needle fades
// as the crowd grows.
TEST(Monotone, InLengthTemperatureAndGap) {
  const double xs[] = {1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 400.0};
  const double taus[] = {0.05, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0};
  for (std::size_t i = 0; i < std::size(xs); ++i) {
    for (std::size_t j = 0; j < std::size(taus); ++j) {
      const double n = std::exp(xs[i]), tau = taus[j];
      const double H = mean_weight_square(n, tau), needle = needle_weight(n, tau, 5);
      if (i > 0) {
        const double fewer = std::exp(xs[i - 1]);
        EXPECT_LT(H, mean_weight_square(fewer, tau)) << n << " " << tau;
        EXPECT_GE(weight_entropy(n, tau), weight_entropy(fewer, tau) - 1e-9) << n << " " << tau;
        EXPECT_LE(needle, needle_weight(fewer, tau, 5)) << n << " " << tau;
      }
      if (j > 0) {
        EXPECT_GT(H, mean_weight_square(n, taus[j - 1])) << n << " " << tau;
        EXPECT_LE(weight_entropy(n, tau), weight_entropy(n, taus[j - 1]) + 1e-9) << n << tau;
      }
      EXPECT_LE(needle, needle_weight(n, tau, 6)) << n << " " << tau;
    }
  }
}

}  // namespace
}  // namespace esscher
