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
//   D(L)           averaging: constant / n (any law); for Gaussian scores, over tau^2,
//                  intermediate E H ((log n - tau^2/2 + m)^2 + v) / tau^2 + (tau E H)^2 with
//                  m = psi(2-k) - psi(k), v = psi'(2-k) + psi'(k), frozen (tau - sqrt(2 log n))^2
//   median of H    Gaussian scores, with x the median of their largest: the largest there, the others
//                  at their mean below it
//
// These are limits inside a phase, and they jump at its boundary. boundary_distance says how far that
// is, as a change of the deviation tau, and crossover_* are the predictions of scaling/crossover.h, which hold
// across all phases.
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
  double crossover_H = 0;
  std::optional<double> H_median = {}, H_median_error = {};
  double predicted_H_median = 0;
  double ess = 0;
  double shrink = 0;
  double predicted_shrink = 0;
  double entropy = 0;  // over log L
  double predicted_entropy = 0;
  double crossover_entropy = 0;
  double needle = 0;
  double predicted_needle = 0;
  double crossover_needle = 0;
  std::optional<double> error = {};
  double predicted_error = 0;
  std::optional<double> crossover_error = {};  // runs that are older have none
  Phase phase = Phase::averaging;
  double freezing_multiple = 0;
  double averaging_multiple = 0;
  double boundary_distance = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("log_L", row.log_L, "", "its natural logarithm");
    column("schedule", row.schedule, "", "what scores are multiplied by");
    column("factor", row.factor, "", "the factor at this length");
    column("tau", row.tau, "", "deviation of the scores after multiplication");
    column("H", row.H, "", "E sum omega^2");
    column("predicted_H", row.predicted_H, "", "the same by asymptotics; nan where there is none");
    column("crossover_H", row.crossover_H, "", "the same by one formula for all phases");
    column("H_median", row.H_median, "", "median of sum omega^2 over prompts, sampled");
    column("H_median_error", row.H_median_error, "", "its standard error");
    column("predicted_H_median", row.predicted_H_median, "", "the median by asymptotics");
    column("ess", row.ess, "tokens", "effective sample size 1/H");
    column("shrink", row.shrink, "", "share of the infinite prompt's shift of the mean score");
    column("predicted_shrink", row.predicted_shrink, "", "the same by asymptotics");
    column("entropy", row.entropy, "", "mean entropy of the weights over log L");
    column("predicted_entropy", row.predicted_entropy, "", "the same by asymptotics");
    column("crossover_entropy", row.crossover_entropy, "", "the same for all phases");
    column("needle", row.needle, "", "expected weight of one more token, `gap` above the mean");
    column("predicted_needle", row.predicted_needle, "", "the same by asymptotics");
    column("crossover_needle", row.crossover_needle, "", "the same for all phases");
    column("error", row.error, "", "D(L) of the layer; of Gaussian scores E(S - tau^2)^2 / tau^2");
    column("predicted_error", row.predicted_error, "", "the same by asymptotics");
    column("crossover_error", row.crossover_error, "", "the same for all phases");
    column("phase", row.phase, "", "averaging, intermediate or frozen");
    column("freezing_multiple", row.freezing_multiple, "", "times this factor, weights freeze");
    column("averaging_multiple", row.averaging_multiple, "", "times this factor, averaging ends");
    column("boundary_distance", row.boundary_distance, "",
           "to the nearest of the two, as a change of tau; predictions of one phase jump there");
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

// The asymptotic D(L), in the units of WeightNumbers::error; NaN where there is no formula.
double predicted_error(const ScoreModel& scores, double f, double log_n, Phase phase);

// A typical value of sum omega^2 among Gaussian scores.
double predicted_median_weight_square(double tau, double log_n);

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

// The retrieval length: the shortest prompt in which the needle weighs less than 1/2. It is 2 if it
// never weighs more, and absent if it does up to 1e15 tokens, or as far as scores are served.
struct RetrievalLength {
  std::string schedule = {};
  std::optional<double> L = {};
  std::optional<double> predicted_L = {};  // by crossover_needle

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("schedule", row.schedule, "", "what scores are multiplied by");
    column("L", row.L, "tokens", "the length from which on the needle weighs less than 1/2");
    column("predicted_L", row.predicted_L, "tokens", "the same by one formula for all phases");
  }
};

RetrievalLength retrieval_length(const ScoreModel& scores, const Schedule& schedule, double gap);

}  // namespace esscher
