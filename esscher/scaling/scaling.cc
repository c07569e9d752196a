#include "esscher/scaling/scaling.h"

#include <algorithm>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "esscher/base/number_text.h"
#include "esscher/concentration/constant.h"
#include "esscher/scaling/crossover.h"
#include "esscher/scaling/detail/normal.h"
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

// The x with n Q(x) = log 2: the median of the largest of n normals, in logarithms.
double median_of_largest(double log_n) {
  const double target = std::log(std::numbers::ln2) - log_n;
  double low = -5, high = std::sqrt(2 * log_n) + 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (log_normal_cdf(-middle) > target ? low : high) = middle;
  }
  return high;
}

constexpr int kEventSteps = 60;  // four per decade of lengths
double event_place(int i) {
  const double first = std::log(2.0), last = std::log(kMaxLayerLength);
  return first + (last - first) * i / kEventSteps;
}

// Where the weight of the needle first falls below 1/2.
std::optional<double> first_below(const ScoreModel& scores, const Schedule& schedule,
                                  const std::function<double(double f, double log_n)>& weight) {
  const auto found = [&](double x) { return weight(schedule.factor(std::exp(x)), x) >= 0.5; };
  if (!found(event_place(0))) return 2;
  for (int i = 1; i <= kEventSteps; ++i) {
    const double x = event_place(i);
    if (scores.deviation(schedule.factor(std::exp(x))) > kMaxTau) break;
    if (!found(x)) return std::exp(place_of_change(found, event_place(i - 1), x));
  }
  return std::nullopt;
}

}  // namespace

double predicted_error(const ScoreModel& scores, double f, double log_n, Phase phase) {
  const double tau = scores.deviation(f), gap = log_n - 0.5 * tau * tau;
  if (!scores.is_gaussian()) {
    if (phase != Phase::averaging) return kNaN;
    const LayerScores& layer = *scores.layer();
    const Attention hot = Attention::from_uv(f * layer.attention.U(), layer.attention.V());
    return asymptotic_constant(Metric::output, layer.mu, hot, layer.z) * std::exp(-log_n);
  }
  if (phase == Phase::averaging) return (1 + tau * tau) * std::exp(tau * tau - log_n);
  if (phase == Phase::frozen) return std::pow(tau - std::sqrt(2 * log_n), 2);
  // One token weighs omega = 1/(1 + e^-y) with the density e^{-ky} of y = s - F; under omega^2 the
  // mean and the variance of y are these.
  const double H = predicted_weight_square(scores, f, log_n, phase), k = 0.5 + log_n / (tau * tau);
  const double mean = boost::math::digamma(2 - k) - boost::math::digamma(k);
  const double variance = boost::math::trigamma(2 - k) + boost::math::trigamma(k);
  const double shift = gap + mean;
  return H * (shift * shift + variance) / (tau * tau) + tau * tau * H * H;
}

double predicted_median_weight_square(double tau, double log_n) {
  const double x = median_of_largest(log_n), top = tau * x;
  // n E[e^{j s}; s below the largest] over e^{j top}.
  const auto others = [&](double j) {
    return std::exp(log_n + 0.5 * j * j * tau * tau - j * top + log_normal_cdf(x - j * tau));
  };
  const double one = 1 + others(1);
  return (1 + others(2)) / (one * one);
}

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
  row.boundary_distance =
      row.tau * std::min(std::abs(row.freezing_multiple - 1), std::abs(row.averaging_multiple - 1));
  if (log_L > 0) {
    const Crossover all = crossover(scores, f, log_L);
    row.crossover_H = all.H;
    row.crossover_needle = all.needle(needle_score);
    row.crossover_entropy = crossover_entropy(scores, f, log_L) / log_L;
    row.crossover_error = crossover_error(scores, f, log_L);
  }
  row.predicted_error = predicted_error(scores, f, log_L, at);
  row.predicted_H_median =
      scores.is_gaussian() ? predicted_median_weight_square(row.tau, log_L) : kNaN;
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
  std::vector<ScalingEvent> out;
  const auto add = [&](ScalingChange change, double x) {
    out.push_back({.schedule = schedule.name(), .change = change, .L = std::exp(x)});
  };
  double before = event_place(0);
  for (int i = 1; i <= kEventSteps; ++i) {
    const double x = event_place(i);
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

RetrievalLength retrieval_length(const ScoreModel& scores, const Schedule& schedule, double gap) {
  RetrievalLength out{.schedule = schedule.name()};
  out.L = first_below(scores, schedule, [&](double f, double log_n) {
    return scores.needle(f, std::exp(log_n), gap);
  });
  out.predicted_L = first_below(scores, schedule, [&](double f, double log_n) {
    return crossover(scores, f, log_n).needle(scores.mean(f) + f * gap);
  });
  return out;
}

}  // namespace esscher
