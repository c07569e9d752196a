// What temperature does a long prompt need? A schedule multiplies scores by a factor of the length;
// each row says what the softmax weights of n tokens are then, exactly, beside what asymptotics say.
//
// Predictions at c = tau / sqrt(log n), Gaussian scores (docs/maths/scaling.md):
//
//   averaging      E H = e^{Lambda(2) - 2 Lambda(1)} / n           (any law)
//   intermediate   E H = n e^{-g^2/2} / (tau sqrt(2 pi)) Gamma(2-k) Gamma(k),
//                  g = (log n + tau^2/2) / tau, k = 1/2 + 1/c^2
//   frozen         E H = 1 - sqrt(2)/c, at c = sqrt(2) it is 1/sqrt(pi log n)
//   entropy/log n  1 - (Lambda'(1) - Lambda(1)) / log n, 0 if frozen   (any law)
//   needle         1 / (1 + e^{F - score}), F = log n + Lambda(1), frozen Gaussian tau sqrt(2 log n)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "esscher/base/cells.h"
#include "esscher/scaling/schedule.h"
#include "esscher/scaling/score_model.h"

namespace esscher {

struct ScalingRow {
  double L = 1;
  double log_L = 0;
  std::string schedule = {};
  double factor = 1;
  double tau = 0;
  double H = 0;
  double predicted_H = 0;  // NaN where there is no formula
  std::optional<double> H_median = {}, H_median_error = {};
  double ess = 0;
  double shrink = 0;
  double predicted_shrink = 0;
  double entropy = 0;  // over log L
  double predicted_entropy = 0;
  double needle = 0;
  double predicted_needle = 0;
  std::optional<double> error = {};
  Phase phase = Phase::averaging;
  double freezing_multiple = 0;
  double averaging_multiple = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("log_L", row.log_L, "", "its natural logarithm");
    column("schedule", row.schedule, "", "what scores are multiplied by");
    column("factor", row.factor, "", "the factor at this length");
    column("tau", row.tau, "", "deviation of the scores after multiplication");
    column("H", row.H, "", "E sum omega^2");
    column("predicted_H", row.predicted_H, "", "the same by asymptotics; nan where there is none");
    column("H_median", row.H_median, "", "median of sum omega^2 over prompts, sampled");
    column("H_median_error", row.H_median_error, "", "its standard error");
    column("ess", row.ess, "tokens", "effective sample size 1/H");
    column("shrink", row.shrink, "", "share of the infinite prompt's shift of the mean score");
    column("predicted_shrink", row.predicted_shrink, "", "the same by asymptotics");
    column("entropy", row.entropy, "", "mean entropy of the weights over log L");
    column("predicted_entropy", row.predicted_entropy, "", "the same by asymptotics");
    column("needle", row.needle, "", "expected weight of one more token, `gap` above the mean");
    column("predicted_needle", row.predicted_needle, "", "the same by asymptotics");
    column("error", row.error, "", "D(L) of the layer; of Gaussian scores E(S - tau^2)^2 / tau^2");
    column("phase", row.phase, "", "averaging, intermediate or frozen");
    column("freezing_multiple", row.freezing_multiple, "", "times this factor, weights freeze");
    column("averaging_multiple", row.averaging_multiple, "", "times this factor, averaging ends");
  }
};

struct ScalingOptions {
  double gap = 0;    // of the needle's score above the mean, at factor 1
  int draws = 1001;  // prompts for the median; 0 leaves it out
  std::uint64_t seed = 0;
};

ScalingRow scaling_row(const ScoreModel& scores, const Schedule& schedule, double L,
                       const ScalingOptions& options);

// One cell per schedule and length, schedules outermost.
Cells<ScalingRow> scaling_cells(const ScoreModel& scores, const std::vector<Schedule>& schedules,
                                const std::vector<double>& lengths, const ScalingOptions& options);

// The asymptotic E H at this phase; NaN where there is no formula.
double predicted_weight_square(const ScoreModel& scores, double f, double log_n, Phase phase);

// Where something changes as the prompt grows from 2 to 1e15 tokens under a schedule.
enum class ScalingChange { dilutes, recovers, freezes, thaws };

constexpr auto enum_names(ScalingChange) {
  return EnumNames<ScalingChange, 4>{"change",
                                     {{{ScalingChange::dilutes, "dilutes"},
                                       {ScalingChange::recovers, "recovers"},
                                       {ScalingChange::freezes, "freezes"},
                                       {ScalingChange::thaws, "thaws"}}}};
}

struct ScalingEvent {
  std::string schedule = {};
  ScalingChange change = ScalingChange::dilutes;
  double L = 1;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("schedule", row.schedule, "", "what scores are multiplied by");
    column(
        "change", row.change, "",
        "dilutes, recovers: the needle's weight falls below 1/2, rises above; freezes, thaws: the "
        "frozen phase begins, ends");
    column("L", row.L, "tokens", "the length where it happens");
  }
};

// In the order of the lengths, up to where the deviation of the scores exceeds kMaxTau. Changes closer
// than a factor of 1.78 that undo each other are not seen.
std::vector<ScalingEvent> scaling_events(const ScoreModel& scores, const Schedule& schedule,
                                         double gap);

}  // namespace esscher
