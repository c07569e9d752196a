// How the scores of a head stand to the length of its prompt, and what a longer prompt would do to its
// weights (docs/howto/scaling.md). For one query with scores s_1 .. s_n:
//
//   c          deviation of the scores over sqrt(log n): sqrt(2/3) and sqrt(2) bound the phases of
//              Gaussian scores (scaling/score_model.h)
//   gap scale  Gamma = max_t log N(t) / t,  N(t) = #{max s - s_j <= t}: scores multiplied by a factor
//              well above Gamma concentrate on the largest, well below they merge
//   forecast   the heaviest key stays one key, and the others of a longer prompt are drawn from the
//              others there are, or are Gaussian with their mean and deviation (scaling/crowd.h)
//   factor     what scores must be multiplied by to keep the effective sample size of today
//
// The test of a forecast is the head itself: the first half of each prompt forecasts the whole of it.
// Its drift says whether the second half could have been drawn from the first: keys that lie nearer to a
// query have larger scores in most causal heads, and the forecast then misses. All figures are medians over a few queries.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "esscher/base/columns.h"
#include "esscher/base/linalg.h"
#include "esscher/scaling/score_model.h"

namespace esscher {

// Gamma of scores in any order; infinity if two of them share the maximum, 0 for a single one.
double gap_scale(Vector scores);

// A prefix of the prompt.
struct ScoreLengthRow {
  Index n = 0;
  double log_n = 0;
  double tau = 0;
  double gap_scale = 0;
  double ess = 0;
  double top_weight = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("n", row.n, "tokens", "keys of the prompt");
    column("log_n", row.log_n, "", "natural logarithm of n");
    column("tau", row.tau, "", "deviation of the scores");
    column("gap_scale", row.gap_scale, "", "largest log N(t) / t of the gaps below the maximum");
    column("ess", row.ess, "tokens", "effective sample size of the softmax weights");
    column("top_weight", row.top_weight, "", "largest softmax weight");
  }
};

// A longer prompt.
struct ForecastRow {
  double n = 0;
  double ess = 0, ess_gaussian = 0;
  double needle = 0, needle_gaussian = 0;
  std::optional<double> factor = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("n", row.n, "tokens", "keys of the longer prompt");
    column("ess", row.ess, "tokens",
           "effective sample size, other keys drawn from those there are");
    column("ess_gaussian", row.ess_gaussian, "tokens", "the same, other scores Gaussian");
    column("needle", row.needle, "", "weight of the key that is heaviest today, others drawn");
    column("needle_gaussian", row.needle_gaussian, "", "the same, other scores Gaussian");
    column("factor", row.factor, "",
           "what scores must be multiplied by to keep the effective sample size of today");
  }
};

// The whole prompt as its first half forecasts it.
struct ForecastTest {
  Index from = 0, to = 0;
  double ess = 0, ess_forecast = 0, ess_gaussian = 0;
  double needle = 0, needle_forecast = 0, needle_gaussian = 0;
  std::optional<double> drift = {};  // runs that are older have none

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("from", row.from, "tokens", "keys that the forecast has seen, median");
    column("to", row.to, "tokens", "keys of the whole prompt, median");
    column("ess", row.ess, "tokens", "effective sample size of the whole prompt, measured");
    column("ess_forecast", row.ess_forecast, "tokens", "the same from the first half, drawn");
    column("ess_gaussian", row.ess_gaussian, "tokens", "the same from the first half, Gaussian");
    column("needle", row.needle, "",
           "weight in the whole prompt of the first half's heaviest key, measured");
    column("needle_forecast", row.needle_forecast, "", "the same from the first half, drawn");
    column("needle_gaussian", row.needle_gaussian, "", "the same from the first half, Gaussian");
    column("drift", row.drift, "",
           "mean score of the second half less that of the first, in deviations of the first");
  }
};

// From here on the second half is none that the first half could have forecast.
inline constexpr double kForecastDrift = 1;
// Why the forecast misses, as the end of a sentence; empty where the halves do not drift so far.
std::string drift_text(const ForecastTest& test);

struct ScoreScale {
  double c = 0;          // at the whole prompt of each query
  double gap_scale = 0;  // the same
  Phase phase = Phase::averaging;
  std::vector<ScoreLengthRow> lengths = {};
  std::vector<ForecastRow> forecast = {};  // at 2, 4 and 16 times the prompt
  std::optional<ForecastTest> test = {};   // absent for prompts of fewer than kForecastKeys
};

inline constexpr Index kForecastKeys = 16;

// Scores of a few queries on their prompts, one vector each, in the order of the keys. Queries without
// scores that vary are left out; nothing is left if there is none, or if the scores of one deviate by
// more than 100.
std::optional<ScoreScale> score_scale(const std::vector<Vector>& scores);

}  // namespace esscher
