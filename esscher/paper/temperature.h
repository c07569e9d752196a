// `esscher paper --which temperature`: what the scale of the scores does to long prompts
// (docs/howto/scaling.md), as statements with verdicts. Numbers, checks and verdict functions as in
// verdicts.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "esscher/paper/judged.h"
#include "esscher/paper/section.h"

namespace esscher::paper {

Statement weight_regimes();    // the four regimes of E H under tau = c sqrt(log L)
Statement golden_ratio();      // averaged over queries, the exponent is 0.618 at lambda = 1
Statement best_temperature();  // a finite prompt asks for a smaller scale than an infinite one

// E sum omega^2 under tau = c sqrt(log L), at one c.
struct RegimeNumbers {
  double c = 0;
  std::string regime = {};  // averaging, intermediate, critical, frozen
  double decades = 0;       // log10 L of the longest prompt
  double ratio = 0;         // exact over the formula of the regime there
  double other = 0;         // exact over the formula of another regime: must not be 1
  double combined = 0;  // exact over the one formula for all regimes, where it is furthest from 1
  double sampled_ratio = 0;  // simulated prompts over exact, at kRegimeSampled tokens
  double sampled_error = 0;
};
inline constexpr std::int64_t kRegimeSampled = 1000;
// The formulas are approached like 1/log L; at 10^250 tokens they are this close.
inline constexpr double kRegimeTolerance = 0.02;
inline constexpr double kCombinedTolerance = 0.08;  // of the one formula, from 100 tokens on
Checks regime_checks(std::span<const RegimeNumbers> numbers);
Verdict judge_regimes(std::span<const RegimeNumbers> numbers);

// E over queries of E sum omega^2, at one lambda.
struct GoldenNumbers {
  double lambda = 0;
  double decades = 0;
  double ratio = 0;          // exact over its closed asymptotic form at the longest prompt
  double exponent = 0;       // local exponent there, logarithms divided out
  double gamma = 0;          // predicted
  double sampled_ratio = 0;  // simulated queries and prompts over exact, at kRegimeSampled tokens
  double sampled_error = 0;
};
inline constexpr double kGoldenTolerance = 0.03;
inline constexpr double kGoldenExponentTolerance = 2e-3;
Checks golden_checks(std::span<const GoldenNumbers> numbers);
Verdict judge_golden(std::span<const GoldenNumbers> numbers);

// The best factor on the scores of the head that an infinite prompt asks for: d features, U = alpha I.
struct BestTemperature {
  std::int64_t d = 1;
  double alpha = 1;
  std::vector<std::int64_t> L = {};
  std::vector<double> factor = {}, error = {};
};
// L (1 - factor) as L grows, where alpha^2 < 1/2.
double best_factor_slope(std::int64_t d, double alpha);
inline constexpr double kBestTolerance = 1e-5;
inline constexpr double kBestSlopeTolerance = 0.01;
inline constexpr std::int64_t kBestSlopeLength = 10000;
Checks best_checks(std::span<const BestTemperature> heads);
Verdict judge_best_temperature(std::span<const BestTemperature> heads);
// What the figure shows: how many of the factors lie below 1.
std::string best_factor_caption(std::span<const BestTemperature> heads);

}  // namespace esscher::paper
