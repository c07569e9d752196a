// The weights of long prompts: the exact integral against simulation, other engines and the four
// asymptotic regimes.
#include "esscher/scaling/scaling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "esscher/scaling/boundary.h"
#include "esscher/scaling/keep.h"
#include "esscher/scaling/sampled_weights.h"
#include "esscher/universal/participation.h"
#include "esscher/universal/universal.h"
#include "tests/testing.h"

namespace esscher {
namespace {

const double kTen = std::log(10.0);

TEST(Participation, IsTheUniversalFunctionAtWholeLengths) {
  for (const std::int64_t L : {1L, 2L, 10L, 1000L, 1000000000L, 1000000000000000L}) {
    for (const double tau : {0.0, 1e-3, 0.3, 1.0, 3.0, 8.0, 40.0}) {
      const double H = universal(L, tau).H;
      EXPECT_NEAR(mean_weight_square(static_cast<double>(L), tau), H, 1e-10 * H)
          << "L = " << L << ", tau = " << tau;
    }
  }
}

// The two checks of theory at lengths that no integer type holds.
TEST(Participation, ReachesItsRegimesAtImmenseLengths) {
  const double x = 60 * kTen, n = 1e60;
  const double low = mean_weight_square(n, 0.5 * std::sqrt(x));
  EXPECT_NEAR(std::log(low) / x, 0.25 - 1, 1e-6);
  const double frozen = mean_weight_square(n, 3 * std::sqrt(x));
  EXPECT_NEAR(frozen, 1 - std::numbers::sqrt2 / 3, 0.02);
  EXPECT_THROW(mean_weight_square(0.5, 1), ArgumentError);
  EXPECT_THROW(mean_weight_square(1e301, 1), ArgumentError);
  EXPECT_THROW(mean_weight_square(10, -1), ArgumentError);
}

// Beyond 1e240 products of the tables underflow; the answer must not.
TEST(Participation, DoesNotVanishWhereItsTablesDo) {
  for (const double c : {0.2, 0.5, 0.6}) {
    const double x = 295 * kTen, H = mean_weight_square(1e295, c * std::sqrt(x));
    EXPECT_NEAR(std::log(H), (c * c - 1) * x, 1e-7) << c;
  }
  const auto away = [](double decades) {
    const double x = decades * kTen, c = 0.9;
    const double H = mean_weight_square(std::exp(x), c * std::sqrt(x));
    const double tau = c * std::sqrt(x), g = (x + 0.5 * tau * tau) / tau, k = 0.5 + 1 / (c * c);
    const double saddle = x - 0.5 * g * g - std::log(tau * std::sqrt(2 * std::numbers::pi)) +
                          std::lgamma(2 - k) + std::lgamma(k);
    return (std::exp(std::log(H) - saddle) - 1) * x;
  };
  EXPECT_NEAR(away(295), away(240), 0.6);
  EXPECT_NEAR(away(262), 0.5 * (away(260) + away(264)), 1e-3);
}

TEST(Scaling, PredictionsMeetTheExactNumbers) {
  const ScoreModel scores = ScoreModel::gaussian(1);
  struct Case {
    double c;
    Phase phase;
    double tolerance;  // at L = 1e15: the approach is slow in the frozen phase
  };
  for (const Case& at :
       {Case{0.4, Phase::averaging, 0.01}, Case{1.1, Phase::intermediate, 0.1},
        Case{std::numbers::sqrt2 * 1.001, Phase::frozen, 0.25}, Case{4.0, Phase::frozen, 0.06}}) {
    const Schedule schedule({.kind = ScheduleKind::sqrt_log, .c = at.c});
    const ScalingRow row = scaling_row(scores, schedule, 1e15, {.draws = 0});
    EXPECT_EQ(row.phase, at.phase) << at.c;
    EXPECT_NEAR(row.predicted_H / row.H, 1, at.tolerance) << at.c;
    EXPECT_NEAR(row.tau, at.c * std::sqrt(15 * kTen), 1e-12);
    EXPECT_EQ(row.L, 1e15);
    EXPECT_NEAR(row.shrink, 1 - row.H, 1e-9);
    EXPECT_NEAR(row.freezing_multiple, std::numbers::sqrt2 / at.c, 1e-9);
    EXPECT_NEAR(row.averaging_multiple, std::sqrt(2.0 / 3) / at.c, 1e-9);
  }
}

// c = 1.2 at two lengths: the exponent of E H in the intermediate regime is (1/c - c/2)^2/2.
TEST(Scaling, IntermediateExponentIsTheSaddlePoints) {
  const double c = 1.2, x = 200 * kTen, y = 250 * kTen;
  const auto h = [&](double log_n) {
    return std::log(mean_weight_square(std::exp(log_n), c * std::sqrt(log_n)) * std::sqrt(log_n));
  };
  const double exponent = -(h(y) - h(x)) / (y - x);
  EXPECT_NEAR(exponent, std::pow(1 / c - c / 2, 2) / 2, 1e-3);
}

TEST(Scaling, SampledWeightsHaveTheExactMean) {
  for (const double n : {50.0, 1500.0, 5000.0, 1e9}) {
    const double tau = 0.5 * std::sqrt(std::log(n));
    Moments moments;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      moments.add(sampled_weight_square(n, tau, Stream(5), i));
    }
    EXPECT_TRUE(testing::agrees(moments.estimate(Engine::sampled), mean_weight_square(n, tau)))
        << n;
  }
}

// Draws of all scores against the largest ones with a Gaussian rest, by the median.
TEST(Scaling, LargestScoresAloneGiveTheMedian) {
  const double n = 20000;
  for (const double tau : {0.5, 2.0, 6.0}) {
    const auto fast = median_weight_square(ScoreModel::gaussian(tau), 1, n, 801, Stream(3));
    const auto slow = median_weight_square(
        ScoreModel::layer({Gaussian(Matrix{{tau * tau}}),
                           Attention::from_uv(Matrix{{1.0}}, Matrix{{1.0}}), Vector{{1.0}}}),
        1, n, 401, Stream(4));
    ASSERT_TRUE(fast && slow);
    EXPECT_TRUE(testing::agree(*fast, *slow)) << tau;
  }
}

TEST(Scaling, ALayerOfGaussianTokensHasGaussianScores) {
  const ScoreModel plain = ScoreModel::gaussian(1.3);
  const ScoreModel layer = ScoreModel::layer(
      {Gaussian(Matrix(Matrix::Identity(2, 2))),
       Attention::from_uv(Matrix(Matrix::Identity(2, 2)), Matrix{{1.0, 0.0}}), Vector{{1.3, 0.0}}});
  for (const double f : {0.5, 1.0, 2.0}) {
    EXPECT_NEAR(layer.deviation(f), plain.deviation(f), 1e-14);
    const WeightNumbers a = plain.weights(f, 1000), b = layer.weights(f, 1000);
    EXPECT_NEAR(a.H / b.H, 1, 1e-9);
    EXPECT_NEAR(a.shrink, b.shrink, 1e-9);
    EXPECT_NEAR(a.entropy, b.entropy, 1e-8);
    EXPECT_NEAR(a.free_energy, b.free_energy, 1e-9);
    EXPECT_NEAR(plain.needle(f, 1000, 4), layer.needle(f, 1000, 4), 1e-9);
    EXPECT_EQ(phase(plain, f, std::log(1000.0)), phase(layer, f, std::log(1000.0)));
  }
}

// Two values: 2^d tokens are all there are, so the weights of d signs freeze at L <= 2^d only.
TEST(Scaling, BoundedScoresNeverFreezeBeyondTheirStates) {
  const ScoreModel coins = ScoreModel::layer(
      {Rademacher(2),
       Attention::from_uv(Matrix(Matrix::Identity(2, 2)), Matrix(Matrix::Identity(2, 2))),
       Vector{{1.0, 0.7}}});
  EXPECT_TRUE(std::isinf(freezing_multiple(coins, 1, std::log(100.0))));
  EXPECT_LT(freezing_multiple(coins, 1, std::log(3.0)), 100);
  EXPECT_NE(phase(coins, 50, std::log(100.0)), Phase::frozen);
}

TEST(Scaling, EventsAreWhereTheNeedleWeighsOneHalf) {
  const ScoreModel scores = ScoreModel::gaussian(1);
  const auto diluted = scaling_events(scores, Schedule({}), 8);
  ASSERT_EQ(diluted.size(), 1U);
  EXPECT_EQ(diluted[0].change, ScalingChange::dilutes);
  EXPECT_NEAR(std::log(diluted[0].L), 8 - 0.5, 0.01);
  EXPECT_NEAR(scores.needle(1, diluted[0].L, 8), 0.5, 1e-9);
  // tau = log n freezes where tau^2/2 = log n.
  const auto frozen = scaling_events(scores, Schedule({.kind = ScheduleKind::log}), -100);
  ASSERT_EQ(frozen.size(), 1U);
  EXPECT_EQ(frozen[0].change, ScalingChange::freezes);
  EXPECT_NEAR(frozen[0].L, std::exp(2.0), 1e-6);
}

TEST(Keep, FactorsKeepWhatTheyPromise) {
  const ScoreModel scores = ScoreModel::gaussian(1.5);
  for (const Kept kept : {Kept::ess, Kept::entropy, Kept::needle}) {
    const auto factors = kept_factors(scores, kept, 6, 4096, {4096, 65536});
    ASSERT_EQ(factors.size(), 2U);
    ASSERT_TRUE(factors[0].factor && factors[1].factor) << name(kept);
    EXPECT_NEAR(*factors[0].factor, 1, 1e-6) << name(kept);
    EXPECT_GT(*factors[1].factor, 1) << name(kept);
    EXPECT_NEAR(factors[1].value / factors[1].target, 1, 1e-9) << name(kept);
  }
}

// In the averaging phase ESS = n e^{-tau^2}, so keeping it asks for tau^2 = tau_0^2 + log(n/n0).
TEST(Keep, AveragingScoresFollowTheirClosedForm) {
  const double tau = 0.3, n = 1e5;
  const auto kept = kept_factors(ScoreModel::gaussian(tau), Kept::ess, 0, 9e4, {n});
  EXPECT_NEAR(*kept[0].factor, std::sqrt(1 + std::log(n / 9e4) / (tau * tau)), 1e-4);
}

TEST(Keep, FamiliesFindThemselves) {
  std::vector<KeptFactor> factors;
  for (const double n : {1e4, 1e5, 1e6}) {
    const double root = 0.07 * std::log(n / 4096) + 1;
    factors.push_back({.L = n, .factor = root * root});
  }
  const auto families = nearest_families(factors, 4096);
  EXPECT_EQ(families.front().family, "yarn");
  EXPECT_NEAR(*families.front().c, 0.07, 1e-6);
  EXPECT_LT(families.front().worst, 1e-8);
  EXPECT_TRUE(nearest_families({}, 4096).empty());
}

// Factors of each published schedule, with its steps, have that family at no distance, and every family a
// row; the others are as far as the worst length says.
TEST(Keep, EveryPublishedFamilyHasARow) {
  constexpr double kTrain = 5000;
  for (const auto& [kind, word] : enum_names(ScheduleKind()).table) {
    if (kind == ScheduleKind::table || kind == ScheduleKind::formula) continue;
    ScheduleOptions options{.kind = kind};
    if (has_coefficient(kind)) options.c = 0.17;
    if (has_training_length(kind)) options.train = kTrain;
    const Schedule schedule(options);
    std::vector<KeptFactor> factors;
    for (const double n : {6e3, 14e3, 3e5, 1e7}) {
      factors.push_back({.L = n, .factor = schedule.factor(n)});
    }
    const auto families = nearest_families(factors, kTrain);
    EXPECT_EQ(families.size(), 8U);
    // log is the form of ssmax.
    const std::string own = kind == ScheduleKind::log ? "ssmax" : std::string(word);
    bool found = false;
    for (const FamilyFit& fit : families) {
      if (fit.family == own) {
        found = true;
        EXPECT_LT(fit.worst, 1e-7) << word;
        EXPECT_NEAR(fit.c.value_or(0.17), 0.17, 1e-6) << word;
      }
      if (fit.family == "constant") {
        double worst = 0;
        for (const KeptFactor& k : factors) worst = std::max(worst, std::abs(1 / *k.factor - 1));
        EXPECT_EQ(fit.worst, worst) << word;
      }
    }
    EXPECT_TRUE(found) << word;
  }
}

TEST(Boundary, FiniteLengthsTendToTheLimit) {
  double last = 1;
  for (const double decades : {3.0, 15.0, 100.0}) {
    const double x = decades * kTen;
    const double away = std::abs(freezing_deviation(x) / asymptotic_freezing_deviation(x) - 1);
    EXPECT_LT(away, last);
    last = away;
  }
  EXPECT_LT(last, 0.03);
  for (const double c : {0.5, 1.0, 3.0}) {
    EXPECT_NEAR(retrieval_gap(c, 100 * kTen), asymptotic_retrieval_gap(c), 0.02) << c;
  }
}

TEST(Boundary, OfAveragingIsWhereRareTokensCarryHalf) {
  double last = 1;
  for (const double decades : {3.0, 15.0, 100.0, 250.0}) {
    const double x = decades * kTen, tau = averaging_deviation(x);
    EXPECT_NEAR(mean_weight_square(std::exp(x), tau) / std::exp(tau * tau - x), 0.5, 1e-6);
    const double away = std::abs(tau / asymptotic_averaging_deviation(x) - 1);
    EXPECT_LT(away, last) << decades;
    last = away;
  }
  EXPECT_LT(last, 0.01);
}

// A cell of each map is the exact number; lines separate heavy from light needles.
TEST(PhaseMap, CellsAreExactAndLinesAreBoundaries) {
  const PhaseMap weights = weight_map();
  EXPECT_EQ(weights.cells.size(), 29U * 30U);
  for (std::size_t i = 0; i < weights.cells.size(); i += 97) {
    const MapCell& cell = weights.cells[i];
    EXPECT_EQ(cell.value, mean_weight_square(std::exp(cell.y * kTen), cell.x));
  }
  const double x = 4 * kTen;
  const PhaseMap needles = needle_map(x);
  for (const MapLine& line : needles.lines) {
    if (!line.exact) continue;
    for (const MapCell& cell : needles.cells) {
      if (std::abs(cell.x - line.x) > 1e-9) continue;
      EXPECT_EQ(cell.value > 0.5, cell.y > line.y) << cell.x << " " << cell.y;
    }
  }
  EXPECT_THROW((void)needle_map(0), ArgumentError);
}

}  // namespace
}  // namespace esscher
