#include "esscher/scaling/scaling.h"

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "esscher/base/number_text.h"
#include "esscher/scaling/sampled_weights.h"
#include "esscher/universal/universal.h"

namespace esscher {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// Within this share of sqrt(2) the prediction is the one at sqrt(2).
constexpr double kCritical = 0.02;

double predicted_free_energy(const ScoreModel& scores, double f, double log_n, Phase phase) {
  if (phase != Phase::frozen) return log_n + scores.log_mgf(f, 1);
  return scores.is_gaussian() ? scores.deviation(f) * std::sqrt(2 * log_n) : kNaN;
}

// The place in [low, high], in log n, where the condition changes its truth.
double place_of_change(const std::function<bool(double)>& holds, double low, double high) {
  const bool before = holds(low);
  for (int i = 0; i < 40; ++i) {
    const double middle = 0.5 * (low + high);
    (holds(middle) == before ? low : high) = middle;
  }
  return high;
}

}  // namespace

double predicted_weight_square(const ScoreModel& scores, double f, double log_n, Phase phase) {
  const double tau = scores.deviation(f), c = tau / std::sqrt(log_n);
  if (phase == Phase::averaging) {
    return std::exp(scores.log_mgf(f, 2) - 2 * scores.log_mgf(f, 1) - log_n);
  }
  if (!scores.is_gaussian()) return kNaN;
  if (std::abs(c / std::numbers::sqrt2 - 1) < kCritical) {
    return 1 / std::sqrt(std::numbers::pi * log_n);
  }
  if (phase == Phase::frozen) return 1 - std::numbers::sqrt2 / c;
  const double g = (log_n + 0.5 * tau * tau) / tau, k = 0.5 + 1 / (c * c);
  return std::exp(log_n - 0.5 * g * g) / (tau * std::sqrt(2 * std::numbers::pi)) *
         std::tgamma(2 - k) * std::tgamma(k);
}

ScalingRow scaling_row(const ScoreModel& scores, const Schedule& schedule, double L,
                       const ScalingOptions& options) {
  const double f = schedule.factor(L), log_L = std::log(L);
  const WeightNumbers w = scores.weights(f, L);
  const Phase at = phase(scores, f, log_L);
  const double needle_score = scores.mean(f) + f * options.gap;
  ScalingRow row{.L = L,
                 .log_L = log_L,
                 .schedule = schedule.name(),
                 .factor = f,
                 .tau = scores.deviation(f),
                 .H = w.H,
                 .predicted_H = predicted_weight_square(scores, f, log_L, at),
                 .ess = 1 / w.H,
                 .shrink = w.shrink,
                 .entropy = log_L > 0 ? w.entropy / log_L : 1,
                 .needle = scores.needle(f, L, options.gap),
                 .error = w.error,
                 .phase = at,
                 .freezing_multiple = freezing_multiple(scores, f, log_L),
                 .averaging_multiple = averaging_multiple(scores, f, log_L)};
  row.predicted_shrink = scores.is_gaussian() ? 1 - row.predicted_H : kNaN;
  row.predicted_entropy =
      at == Phase::frozen ? 0 : 1 - (scores.slope(f, 1) - scores.log_mgf(f, 1)) / log_L;
  row.predicted_needle =
      1 / (1 + std::exp(predicted_free_energy(scores, f, log_L, at) - needle_score));
  if (options.draws > 0) {
    const auto found = median_weight_square(scores, f, L, options.draws, Stream(options.seed));
    if (found) {
      row.H_median = found->value;
      row.H_median_error = found->std_error;
    }
  }
  return row;
}

Cells<ScalingRow> scaling_cells(const ScoreModel& scores, const std::vector<Schedule>& schedules,
                                const std::vector<double>& lengths, const ScalingOptions& options) {
  Cells<ScalingRow> cells;
  for (const Schedule& schedule : schedules) {
    for (const double L : lengths) {
      cells.keys.push_back(schedule.name() + "/L=" + brief(L, 15));
    }
  }
  cells.compute = [=](std::size_t i) {
    const std::size_t count = lengths.size();
    return std::vector<ScalingRow>{
        scaling_row(scores, schedules[i / count], lengths[i % count], options)};
  };
  return cells;
}

std::vector<ScalingEvent> scaling_events(const ScoreModel& scores, const Schedule& schedule,
                                         double gap) {
  const auto found = [&](double x) {
    return scores.needle(schedule.factor(std::exp(x)), std::exp(x), gap) >= 0.5;
  };
  const auto frozen = [&](double x) {
    return phase(scores, schedule.factor(std::exp(x)), x) == Phase::frozen;
  };
  const double first = std::log(2.0), last = std::log(1e15);
  constexpr int kSteps = 60;  // four per decade
  std::vector<ScalingEvent> out;
  const auto add = [&](ScalingChange change, double x) {
    out.push_back({.schedule = schedule.name(), .change = change, .L = std::exp(x)});
  };
  double before = first;
  for (int i = 1; i <= kSteps; ++i) {
    const double x = first + (last - first) * i / kSteps;
    if (scores.deviation(schedule.factor(std::exp(x))) > kMaxTau) break;
    if (found(before) != found(x)) {
      add(found(x) ? ScalingChange::recovers : ScalingChange::dilutes,
          place_of_change(found, before, x));
    }
    if (frozen(before) != frozen(x)) {
      add(frozen(x) ? ScalingChange::freezes : ScalingChange::thaws,
          place_of_change(frozen, before, x));
    }
    before = x;
  }
  return out;
}

}  // namespace esscher
